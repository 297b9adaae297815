"""Copies between host and device: which are allowed, and how they are made."""

from __future__ import annotations

import threading
from typing import Any

import torch

from capdoctor.capture.memory import claim
from capdoctor.capture.session import Session

_to_copy = torch.ops.aten._to_copy.default  # noqa: SLF001
_PINNED_CHECK = (2, 11)  # the release that first refuses pageable copies by itself


def judge_copy(
    session: Session, on_host: torch.Tensor, operation: str, *, non_blocking: bool, direct: bool
) -> None:
    """Judge a copy. ``direct``: no temporary host buffer is needed, the memory lies as copied."""
    if on_host.numel() == 0:
        return
    pinned = session.tags.is_pinned(on_host) and direct
    if session.capturing():
        if session.release >= _PINNED_CHECK and not pinned:
            session.forbid("pageable_copy", operation)
        session.launch(operation)
        if not non_blocking and (pinned or session.release < _PINNED_CHECK):
            session.forbid("blocking_copy" if pinned else "pageable_copy", operation)
    elif not non_blocking:
        session.judge(session.machine.unsafe(threading.get_ident(), "blocking_copy"), operation)


def lies_dense(tensor: torch.Tensor) -> bool:
    """Say whether the tensor fills its memory without gaps, in whatever order."""
    return bool(torch.ops.aten.is_non_overlapping_and_dense(tensor))


def to_device(
    session: Session,
    tensor: torch.Tensor,
    operation: str,
    *,
    non_blocking: bool = False,
    **options: Any,
) -> torch.Tensor:
    """Copy a tensor of the host to the device."""
    direct = lies_dense(tensor)
    session.allocate(operation)
    judge_copy(session, tensor, operation, non_blocking=non_blocking, direct=direct)
    result = _copied(session, tensor, options)
    claim(session, (result,))
    _tape(session, tensor, result)
    return result


def to_host(
    session: Session,
    tensor: torch.Tensor,
    operation: str,
    *,
    non_blocking: bool = False,
    **options: Any,
) -> torch.Tensor:
    """Copy a tensor of the device to the host; a non-blocking copy lands in pinned memory."""
    if tensor.numel() and session.capturing():
        if not non_blocking:
            session.forbid("pageable_copy", operation)
        session.launch(operation)
    elif tensor.numel() and not non_blocking:
        session.judge(session.machine.unsafe(threading.get_ident(), "blocking_copy"), operation)
    result = _copied(session, tensor, options)
    session.tags.unmark_cuda(result)
    if non_blocking:
        session.tags.mark_pinned(result)
    _tape(session, tensor, result)
    return result


def _copied(session: Session, tensor: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """Copy by plain means: the lower net must not see it."""
    session.operations += 1
    with torch._C._DisableTorchDispatch():  # noqa: SLF001
        dtype = options.pop("dtype", None) or tensor.dtype
        return tensor.to(copy=True, dtype=dtype, **options)


def _tape(session: Session, source: torch.Tensor, result: torch.Tensor) -> None:
    tape = session.tape()
    if tape is None:
        return
    tape.keep((result,))
    if result.numel():
        plain = {"dtype": result.dtype}
        tape.add(_to_copy, (source.detach(),), plain, (result.detach(),))
