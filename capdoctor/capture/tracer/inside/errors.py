"""Exceptions as the journal holds them."""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any

from .calls import Call, Hidden, as_json, source_of, starts_thread, walk_traceback

if TYPE_CHECKING:
    from .calls import Place

_MESSAGE = 2000
_UNSEEN = "native code"
_DRIVERS = ("CUDA error", "CUDA driver error", "HIP error")
_BY_PROGRAM = frozenset({"RAISE_VARARGS", "RERAISE"})
_SLOTS = {
    "BINARY_SUBSCR": "torch.Tensor.__getitem__",
    "BINARY_SLICE": "torch.Tensor.__getitem__",
    "STORE_SUBSCR": "torch.Tensor.__setitem__",
    "STORE_SLICE": "torch.Tensor.__setitem__",
    "BINARY_OP": _UNSEEN,
    "COMPARE_OP": _UNSEEN,
    "CONTAINS_OP": _UNSEEN,
    "UNARY_NEGATIVE": _UNSEEN,
    "UNARY_INVERT": _UNSEEN,
}


def error_json(error: BaseException | None) -> dict[str, Any] | None:
    """Type, the driver's code where torch hands it on, and message."""
    if error is None:
        return None
    code = getattr(error, "error_code", None)
    return {
        "type": type(error).__name__,
        "code": code if isinstance(code, int) else None,
        "message": _message(error)[:_MESSAGE],
    }


def _message(error: BaseException) -> str:
    """The text of an exception, whose own code may fail."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the program's code, not ours
        return ""


def is_drivers(error: BaseException) -> bool:
    """Say whether the driver refused a call, and not a check of arguments before it."""
    code = getattr(error, "error_code", None)
    return isinstance(code, int) or any(mark in _message(error) for mark in _DRIVERS)


def chain_of(
    error: BaseException | None, until: BaseException | None = None
) -> list[BaseException]:
    """The exception and all that it is chained to before ``until``, the first raised first."""
    found: dict[int, BaseException] = {}  # by identity: a program may define what is equal
    while error is not None and error is not until and id(error) not in found:
        found[id(error)] = error
        # Not by "or": a program may define what is true.
        error = error.__context__ if error.__cause__ is None else error.__cause__
    return list(found.values())[::-1]


def slot_that_raised(error: BaseException, hidden: Hidden) -> tuple[str, tuple[Place, ...]] | None:
    """The operation of a line that raised without any call that a hook sees: ``x[[0, 1]]``.

    None if the program itself raised, or if the error is not of the kind that torch raises.
    """
    trace = error.__traceback__
    if not isinstance(error, RuntimeError) or trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    done = dis.opname[code.co_code[trace.tb_lasti]]
    torchs = type(error).__module__.partition(".")[0] == "torch" and done not in _BY_PROGRAM
    name = _SLOTS.get(done, _UNSEEN if torchs else None)
    if hidden.is_hidden(code) or name is None:
        return None
    return name, walk_traceback(error.__traceback__, hidden)


def raised_json(chain: list[BaseException], hidden: Hidden) -> dict[str, Any] | None:
    """The first exception of a chain and where it was raised; None for none.

    ``in_thread`` says that the stack is that of another thread, which handed its exception over.
    """
    if not chain:
        return None
    first = next((e for e in chain if isinstance(e, RuntimeError)), chain[0])
    places = walk_traceback(first.__traceback__, hidden)
    start = starts_thread(places)
    kept = places if start is None else places[:start]
    name = source_of(kept[0]) if kept else ""
    call = as_json(Call(name, None, kept, 0))
    return {"error": error_json(first), "call": call, "in_thread": start is not None}
