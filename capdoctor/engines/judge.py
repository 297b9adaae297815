"""From how a run went to what is answered. Pure."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from capdoctor.engines.embedded import EXIT_SETUP_FAILED, SETUP_FAILED
from capdoctor.engines.ended import Departure, Ended
from capdoctor.model import Outcome, ProcessEnd, Stage

_TITLE = re.compile(r"VLLM::(\w+)")
_TRACKER = "multiprocessing.resource_tracker"
_TRACKER_NAME = "resource_tracker"
_WELL = "exit 0"
# An end that says itself that something was wrong: no ``exit 0``, no ``unknown``.
_FAILED = re.compile(r"(?!exit 0\b)(exit|SIG|signal)")
_ENGINE_NAME = {"vllm": "front end", "embedded": "engine"}


def outcome_of(ended: Ended, kind: str, runner: Mapping[str, Any]) -> tuple[Outcome, str]:
    """Give the outcome and the reason for it, one clause without a full stop."""
    if ended.how == "ready" or (ended.how == "exited" and runner.get("step") == "ready"):
        return Outcome.STARTED, f"the engine was ready after {ended.seconds:.1f} s"
    match ended.how:
        case "stopped_after_stage":
            return Outcome.STOPPED_AFTER_STAGE, f"{ended.why}, ended as asked"
        case "hung" | "timed_out":
            return Outcome.HUNG, f"{ended.why}, in stage {ended.stage.value}"
        case "interrupted":
            return Outcome.INTERRUPTED, f"{ended.why} in stage {ended.stage.value}"
        case "lost":
            return Outcome.SETUP_FAILED, ended.why
        case _:
            return _of_exit(ended, kind, runner)


def _of_exit(ended: Ended, kind: str, runner: Mapping[str, Any]) -> tuple[Outcome, str]:
    if ended.failed_to_start is not None:
        return Outcome.SETUP_FAILED, f"the engine cannot be executed: {ended.failed_to_start}"
    if runner.get("step") == "refused":
        return Outcome.SETUP_FAILED, str(runner.get("reason"))
    code = exit_code(ended)
    refused = code == EXIT_SETUP_FAILED and ended.last_line.startswith(SETUP_FAILED)
    if kind == "embedded" and refused:
        return Outcome.SETUP_FAILED, ended.last_line.removeprefix(SETUP_FAILED)
    if code == 0:
        if kind == "embedded" and ended.stage in (Stage.SERVING, Stage.SHUTDOWN):
            return Outcome.STARTED, f"the engine was ready after {ended.seconds:.1f} s"
        return Outcome.SETUP_FAILED, "the engine process ended well without starting an engine"
    return Outcome.CRASHED, _crash(ended, kind)


def _crash(ended: Ended, kind: str) -> str:
    """Say how the first process ended, and who went before it."""
    ends = process_ends(ended, kind)
    main = next((end for end in ends if end.pid == ended.main_pid), None)
    text = f"the {_ENGINE_NAME[kind]} ended with {main.end if main else 'unknown'}"
    text += f" in stage {ended.stage.value}"
    before = ends[: ends.index(main)] if main else ends
    return text + _who_went([end for end in before if end.name != _TRACKER_NAME])


def _who_went(before: Sequence[ProcessEnd]) -> str:
    """Name who went before the process that we started, the first that is to be blamed.

    A worker that met an error tells the engine process, and ends well when it is told to: that it
    was quicker than those who told it explains nothing, and its ``exit 0`` would look like a cause.
    """
    if not before:
        return ""
    first = before[0]
    failed = next((end for end in before if _FAILED.match(end.end)), None)
    if not first.end.startswith(_WELL) or failed is None:
        return f"; first to go was {first.name} {first.pid} ({first.end})"
    return f"; first seen to fail was {failed.name} {failed.pid} ({failed.end})"


def exit_code(ended: Ended) -> int | None:
    """Give how the process that we started ended: negative for a signal, None if we ended it."""
    for gone in ended.departures:
        if gone.pid == ended.main_pid and not gone.by_us and gone.status is not None:
            return os.waitstatus_to_exitcode(gone.status)
    return None


def process_ends(ended: Ended, kind: str) -> tuple[ProcessEnd, ...]:
    """Give how each engine process ended, in that order.

    Compilers, probes and the like are left out unless they ended badly.
    """
    worth = [gone for gone in ended.departures if _is_worth_naming(gone, ended)]
    ends = [_end(gone, ended, kind) for gone in sorted(worth, key=lambda gone: gone.seconds)]
    left = [ProcessEnd(ended.names.get(pid, "process"), pid, "still there") for pid in ended.left]
    return (*ends, *left)


def _is_worth_naming(gone: Departure, ended: Ended) -> bool:
    known = gone.pid == ended.main_pid or gone.pid in ended.names
    engine = _TITLE.search(gone.title) is not None or _TRACKER in gone.title
    return known or engine or (bool(gone.status) and not gone.by_us)


def _end(gone: Departure, ended: Ended, kind: str) -> ProcessEnd:
    name = _name(gone, ended, kind)
    return ProcessEnd(name, gone.pid, _how(gone, name, ended.codes), round(gone.seconds, 2))


def _name(gone: Departure, ended: Ended, kind: str) -> str:
    if gone.pid == ended.main_pid:
        return _ENGINE_NAME[kind]
    if gone.pid in ended.names:
        return ended.names[gone.pid]
    if _TRACKER in gone.title:
        return _TRACKER_NAME
    title = _TITLE.search(gone.title)
    return title[1] if title else os.path.basename(gone.title.split(" ")[0]) or "process"  # noqa: PTH119 - a title


def _how(gone: Departure, name: str, codes: Mapping[str, int]) -> str:
    if gone.status is not None:
        text = describe_code(os.waitstatus_to_exitcode(gone.status))
    elif name in codes and not gone.by_us:
        text = f"{describe_code(codes[name])} (says the log)"
    else:
        text = "" if gone.by_us else "unknown"
    return f"{text} (ended by capdoctor)".strip() if gone.by_us else text


def describe_code(code: int) -> str:
    """Give an exit code as people say it: ``exit 1``, ``SIGKILL``."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
