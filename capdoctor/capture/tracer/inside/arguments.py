"""The event that a line of the program hands to a function of C.

Python tells a profile hook which function of C is called, and not with what. ``torch.Stream`` and
``torch.Event`` cannot be wrapped (their types are immutable), so the argument is looked up where
the line has it from: a variable, or an attribute of one. Nothing of the program is called for it.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import FrameType
from typing import Any

_WAYS = 4  # attributes in a row


def events_on_line(frame: FrameType, kinds: tuple[type, ...]) -> list[Any]:
    """The objects of these kinds that the line in which the frame stands names, last one first."""
    names = _names_of_line(frame)
    reached = [v for n in names if (v := _variable(frame, n)) is not None]
    found = []
    for _ in range(_WAYS):
        found += [v for v in reached if isinstance(v, kinds)]
        reached = [v for owner in reached for n in names if (v := _stored(owner, n)) is not None]
    return list({id(v): v for v in reversed(found)}.values())


def _names_of_line(frame: FrameType) -> list[str]:
    return list(dict.fromkeys(_walk_names(frame)))


def _walk_names(frame: FrameType) -> Iterator[str]:
    line = frame.f_code.co_firstlineno
    starts = dict(dis.findlinestarts(frame.f_code))
    for step in dis.get_instructions(frame.f_code):
        line = starts.get(step.offset) or line
        if line != frame.f_lineno:
            continue
        values = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        yield from (v for v in values if isinstance(v, str) and v.isidentifier())


def _variable(frame: FrameType, name: str) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _stored(owner: Any, name: str) -> Any:
    """An attribute that an instance holds itself: a property would run the program's code."""
    try:
        held = object.__getattribute__(owner, "__dict__")
    except (AttributeError, TypeError):
        return None
    return held.get(name) if isinstance(held, dict) else None
