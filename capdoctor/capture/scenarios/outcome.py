"""The ways in which a scenario ends, other than passing."""

from __future__ import annotations


class NotApplicable(Exception):
    """The tree lacks what the scenario exercises; the text says what."""


class CannotExercise(Exception):
    """The tree has it in a shape that the scenario does not know; the text says which."""


class WrongResult(Exception):
    """The tree's code ran, and what it left on the device is wrong."""


class OrderViolation(WrongResult):
    """A stream read what another wrote without being ordered after it: a data race."""
