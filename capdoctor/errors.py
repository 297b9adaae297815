"""The few kinds of error a user can meet, each with a hint and an exit code.

CapdoctorError
 +- UsageError       the command line contradicts itself            exit 2
 +- CannotDo         the work could not be done                     exit 3
 +- Interrupted      the user stopped it; clean-up is done          exit 130

Anything else that reaches the boundary in ``cli`` is a fault of capdoctor's own (exit 4).
"""

from __future__ import annotations

from typing import ClassVar


class CapdoctorError(Exception):
    """Say in one sentence what went wrong, and in one hint what to do next."""

    exit_code: ClassVar[int] = 3

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class UsageError(CapdoctorError):
    """The command line is wrong in a way that the option parser cannot see."""

    exit_code = 2


class CannotDo(CapdoctorError):
    """The work could not be done: unreadable file, missing engine, full disk."""

    exit_code = 3


class Interrupted(CapdoctorError):
    """The user stopped the work; the hint is the command that resumes it."""

    exit_code = 130
