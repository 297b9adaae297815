"""Which class an operation stands for that the tracer saw break a capture. Data: offences.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capdoctor.diagnosis.driver_errors import decode
from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.tables import table
from capdoctor.model import Confidence, Offence


@dataclass(frozen=True, slots=True)
class OffenceClass:
    """A class, the classes of a log that say the same, and how sure it can be at most."""

    crash_class: str
    also: frozenset[str] = frozenset()
    at_most: Confidence = "confirmed"

    def agrees_with(self, crash_class: str) -> bool:
        """Whether a log's class says the same."""
        return crash_class == self.crash_class or crash_class in self.also


def class_of(offence: Offence) -> OffenceClass | None:
    """Give the class of an offence, None where what was seen does not tell."""
    for row in table("offences")["rows"]:
        tests = [_TESTS[name](row[name], offence) for name in _TESTS if name in row]
        if all(tests):
            also = frozenset(row.get("also", ()))
            return OffenceClass(row["class"], also, row.get("at_most", "confirmed"))
    return None


def code_of(offence: Offence) -> int | None:
    """The driver's code of what the operation raised, else of what the end of the capture did."""
    for error in (offence.error, offence.end_error):
        if error is not None:
            if error.code is not None:
                return error.code
            driver = decode(error.message)
            return driver.code if driver is not None else None
    return None


def _kind(values: Sequence[str], offence: Offence) -> bool:
    return offence.kind.value in values


def _operation(values: Sequence[str], offence: Offence) -> bool:
    named = [name for name in (offence.call.operation, offence.call.called_as) if name]
    return any(_name_fits(name, glob) for name in named for glob in values)


def _name_fits(name: str, glob: str) -> bool:
    start, star, _ = glob.partition("*")
    return name.startswith(start) if star else name == glob


def _code(values: Sequence[int], offence: Offence) -> bool:
    return code_of(offence) in values


def _text(values: Sequence[str], offence: Offence) -> bool:
    error = offence.error or offence.end_error
    said = f"{error.type or ''}: {error.message}".lower() if error is not None else ""
    return any(value.lower() in said for value in values)


def _driver(values: Sequence[str], offence: Offence) -> bool:
    said = "\n".join((offence.call.operation, *offence.driver))
    return any(value in said for value in values)


def _stack(values: Sequence[str], offence: Offence) -> bool:
    globs = tuple(values)
    return any(frame_fits(frame.file, frame.function, globs) for frame in offence.call.stack)


_TESTS: Mapping[str, Callable[[Any, Offence], bool]] = {
    "kind": _kind,
    "operation": _operation,
    "code": _code,
    "text": _text,
    "driver": _driver,
    "stack": _stack,
}
