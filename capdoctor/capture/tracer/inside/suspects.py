"""Operations that raised while a capture went on: the one whose exception leaves it broke it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from .calls import Call
from .errors import error_json

if TYPE_CHECKING:
    from .calls import Place

_KEPT = 20  # the last ones: an exception that leaves is never old
_TOLD = 100  # of one capture; a program may catch thousands


class Suspect(NamedTuple):
    """An operation and, where a hook was given it, its exception as the journal has it."""

    call: Call
    error: dict[str, Any] | None

    def names(self) -> set[str]:
        """What the operation is called, and as what the program called it."""
        return {self.call.operation, self.call.called_as or self.call.operation}


class Suspects:
    """The suspects of one capture; ``told`` counts them."""

    def __init__(self) -> None:
        self._last: deque[Suspect] = deque(maxlen=_KEPT)
        self.told = 0

    def add(self, call: Call, error: BaseException | None) -> Suspect | None:
        """Remember one; give it if it is to be written down.

        Several hooks tell of one exception on its way, the innermost first: what a line raised
        under a name that is known stays as it is.
        """
        new = Suspect(call, error_json(error))
        for known in self._last:
            if known.call.places[:1] == call.places[:1] and known.names() & new.names():
                self._last.remove(known)
                self._last.append(Suspect(known.call, new.error or known.error))
                return None
        self._last.append(new)
        self.told += 1
        return new if self.told <= _TOLD else None

    def raised(self, error: BaseException, places: set[Place]) -> Call | None:
        """The operation that raised this exception, whose traceback has these places."""
        there = [one for one in self._last if one.call.places and one.call.places[0] in places]
        said = error_json(error)
        likely = [one for one in there if one.error == said] or there
        return likely[-1].call if likely else None
