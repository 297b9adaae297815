"""Operators that meet tensors of the host and of the device: transfers, and plain mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from capdoctor.capture.plans import Plan
from capdoctor.capture.session import Session
from capdoctor.capture.transfers import judge_copy, lies_dense

_MASKS = (torch.bool, torch.uint8)
MIXING = "mixed devices"  # in ``exempt``: a composite of torch moves its host operands itself
_ANYWHERE = ("_foreach", "_fused", "_amp")
_STRUCTURED = frozenset(
    {"cat", "mm", "addmm", "bmm", "baddbmm", "gather", "scatter", "scatter_add", "index_add",
     "topk", "sort", "cumsum", "cumprod", "softmax", "_softmax", "_log_softmax", "addmv"}
)  # fmt: skip


def check(session: Session, plan: Plan, args: tuple[Any, ...], host: list[torch.Tensor]) -> None:
    """Judge an operator with at least one operand on each side.

    Raises:
        RuntimeError: torch's own, if the operator takes all its tensors from one device.
    """
    if plan.transfer == "copy":
        _copy(session, args)
    elif plan.transfer == "index":
        _index(session, plan, args)
    elif plan.transfer == "where":
        _where(session, plan, args, host)
    else:
        _same_device(session, plan, args, host)


def _copy(session: Session, args: tuple[Any, ...]) -> None:
    target, source = args[0], args[1]
    non_blocking = bool(args[2]) if len(args) > 2 else False  # noqa: PLR2004
    on_host = source if session.tags.is_cuda(target) else target
    alike = target.shape == source.shape and target.stride() == source.stride()
    direct = target.shape == source.shape and (
        on_host.is_contiguous() or (alike and lies_dense(on_host))
    )
    judge_copy(session, on_host, "copy_", non_blocking=non_blocking, direct=direct)


def _index(session: Session, plan: Plan, args: tuple[Any, ...]) -> None:
    """Indices of the host are copied to the device; so is a scalar that is stored by index."""
    if not session.tags.is_cuda(args[0]):
        message = f"indices should be either on {args[0].device} or on the same device as the"
        raise RuntimeError(f"{message} indexed tensor ({args[0].device})")
    for index in args[1]:
        if index is None or session.tags.is_cuda(index):
            continue
        if index.dtype in _MASKS and plan.name == "aten::index" and session.release >= (2, 11):
            continue  # measured: the positions are found on the host and pass through pinned memory
        judge_copy(session, index, "index", non_blocking=False, direct=True)
    if plan.name != "aten::index" and not session.tags.is_cuda(args[2]):
        masks = all(i is None or (i.dtype in _MASKS and session.tags.is_cuda(i)) for i in args[1])
        if not (masks and args[2].numel() == 1):
            judge_copy(session, args[2], "index_put_", non_blocking=False, direct=True)


def _where(session: Session, plan: Plan, args: tuple[Any, ...], host: list[torch.Tensor]) -> None:
    """torch.where moves a 0-dim operand of the host over; larger ones must be there already."""
    if any(t.dim() > 0 for t in host):
        _same_device(session, plan, args, host)
    for tensor in host:
        judge_copy(session, tensor, "where", non_blocking=False, direct=True)


def _same_device(
    session: Session, plan: Plan, args: tuple[Any, ...], host: list[torch.Tensor]
) -> None:
    """Scalars of the host may take part in pointwise work; nothing else may be mixed."""
    short = plan.name.partition("::")[2]
    host = [tensor for tensor in host if not tensor._is_zerotensor()]  # noqa: SLF001
    if not host:
        return
    if MIXING in session.local.exempt or short.startswith(_ANYWHERE):
        return
    if plan.name.startswith("prims::"):
        return  # torch's own Python decompositions, which spread host scalars
    if all(t.dim() == 0 for t in host) and short not in _STRUCTURED | _NO_HOST_SCALAR:
        return
    if short not in _SHOWN_AS and (
        plan.pointwise or plan.name == "aten::where" or "out" in plan.arguments
    ):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices,"
            " cuda:0 and cpu!"
        )
    if short in _SHOWN_AS:
        name, method = _SHOWN_AS[short]
        raise RuntimeError(_MISPLACED.format(name=name, here="cpu", there="cuda:0", method=method))
    first = _first(args)
    home_is_host = first is not None and not session.tags.is_cuda(first) and short not in _ALIKE
    name, here, there = _odd_one(session, plan, args, home_is_host=home_is_host)
    method = f"wrapper_CUDA_{short}" if short in _STRUCTURED else f"wrapper_CUDA__{short}"
    raise RuntimeError(_MISPLACED.format(name=name, here=here, there=there, method=method))


_MISPLACED = (
    "Expected all tensors to be on the same device, but got {name} is on {here}, different from"
    " other tensors on {there} (when checking argument in method {method})"
)
_NO_HOST_SCALAR = frozenset({"index_select", "dot", "stack", "embedding", "clamp"})
_ALIKE = frozenset({"cat"})
# On the device these are made of another operator, which is the one that complains (measured).
_SHOWN_AS = {
    "stack": ("tensors", "wrapper_CUDA_cat"),
    "embedding": ("index", "wrapper_CUDA__index_select"),
    "clamp": ("min", "wrapper_CUDA_clamp_Tensor"),
}


def _first(args: tuple[Any, ...]) -> torch.Tensor | None:
    return next((a for a in args if isinstance(a, torch.Tensor)), None)


def _odd_one(
    session: Session, plan: Plan, args: tuple[Any, ...], *, home_is_host: bool
) -> tuple[str, str, str]:
    """The first argument that lies elsewhere than the first one, and where both lie."""
    home, away = ("cpu", "cuda:0") if home_is_host else ("cuda:0", "cpu")
    for name, value in zip(plan.arguments, args, strict=False):
        items: Sequence[Any] = value if isinstance(value, list | tuple) else (value,)
        for item in items:
            if isinstance(item, torch.Tensor) and session.tags.is_cuda(item) is home_is_host:
                return name, away, home
    return plan.arguments[0], away, home
