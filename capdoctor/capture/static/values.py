"""What the static pass knows about the value of an expression: kind, place, dimensions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal[
    "unknown", "tensor", "python", "sequence", "tuple", "numpy", "device", "stream", "event"
]
Place = Literal["device", "host", "unknown"]

# How a fact is known. A factory's device argument proves it; an annotation makes it likely.
GUESSED, ASSUMED, INFERRED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Value:
    """One abstract value. ``sure`` grades the place.

    ``cls`` names a class of the same module, ``origin`` the parameter that the value came in by.
    """

    kind: Kind = "unknown"
    place: Place = "unknown"
    ndim: int | None = None
    sure: int = GUESSED
    boolean: bool = False
    pinned: bool = False
    none_only: bool = False
    cls: str = ""
    origin: str = ""

    @property
    def on_device(self) -> bool:
        """Say whether this is a tensor on the device, as far as can be told."""
        return self.kind == "tensor" and self.place == "device"

    @property
    def on_host(self) -> bool:
        """Say whether this is known to be a tensor in host memory."""
        return self.kind == "tensor" and self.place == "host"

    def like(self, ndim: int | None = None, *, boolean: bool = False) -> Value:
        """Give a tensor computed from this one: same place, other shape."""
        return replace(self, ndim=ndim, boolean=boolean, pinned=False)


UNKNOWN = Value()
PYTHON = Value(kind="python", place="host", sure=INFERRED)
SEQUENCE = Value(kind="sequence", place="host", sure=INFERRED)
TUPLE = Value(kind="tuple", place="host", sure=INFERRED)
NUMPY = Value(kind="numpy", place="host", sure=INFERRED)
NONE = Value(kind="python", place="host", sure=INFERRED, none_only=True)


def tensor(
    place: Place, sure: int = INFERRED, ndim: int | None = None, *, boolean: bool = False
) -> Value:
    """Give a tensor value."""
    return Value(kind="tensor", place=place, ndim=ndim, sure=sure, boolean=boolean)


def join(first: Value, second: Value) -> Value:
    """Give what holds on both of two paths that meet."""
    if first == second or second.none_only:
        return first
    if first.none_only:
        return second
    if first.kind != second.kind:
        return UNKNOWN
    return Value(
        kind=first.kind,
        place=first.place if first.place == second.place else "unknown",
        ndim=first.ndim if first.ndim == second.ndim else None,
        sure=min(first.sure, second.sure),
        boolean=first.boolean and second.boolean,
        pinned=first.pinned and second.pinned,
        origin=first.origin if first.origin == second.origin else "",
    )


def mix(first: Value, second: Value) -> Value:
    """Give the result of an element-wise operation: the device wins, dimensions broadcast."""
    tensors = [value for value in (first, second) if value.kind == "tensor"]
    if not tensors:
        return PYTHON if first.kind == second.kind == "python" else UNKNOWN
    if len(tensors) == 1:
        other = second if tensors[0] is first else first
        if other.kind == "unknown":
            return tensors[0].like(None)
        return tensors[0].like(tensors[0].ndim)
    strongest = max(tensors, key=lambda value: (value.place == "device", value.sure))
    dims = [value.ndim for value in tensors]
    known = [dim for dim in dims if dim is not None]
    return strongest.like(max(known) if len(known) == len(dims) else None)
