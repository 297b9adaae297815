"""``Tensor.to`` in all its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from capdoctor.capture.factories import is_cuda_device
from capdoctor.capture.session import DEVICE, Session
from capdoctor.capture.transfers import to_device, to_host


@dataclass(frozen=True, slots=True)
class Move:
    """What a call of ``Tensor.to`` asks for; None where it does not say."""

    device: Any
    dtype: torch.dtype | None
    non_blocking: bool
    copy: bool
    memory_format: torch.memory_format | None

    @property
    def options(self) -> dict[str, Any]:
        """What is asked besides the place."""
        layout = {} if self.memory_format is None else {"memory_format": self.memory_format}
        return {"dtype": self.dtype, **layout}


def move(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry a call of ``Tensor.to`` out: across the border, or where the tensor is."""
    tensor = args[0]
    asked = _parse(session, args[1:], kwargs)
    on_device = session.tags.is_cuda(tensor)
    if asked.device is not None and torch.device(asked.device).type not in ("cuda", "cpu"):
        return func(*args, **kwargs)
    wanted = on_device if asked.device is None else is_cuda_device(asked.device)
    if wanted and not on_device:
        return to_device(session, tensor, "to", non_blocking=asked.non_blocking, **asked.options)
    if on_device and not wanted:
        return to_host(session, tensor, "to", non_blocking=asked.non_blocking, **asked.options)
    if asked.dtype is None and not asked.copy and asked.memory_format is None:
        return tensor
    options = {**asked.options, "dtype": asked.dtype or tensor.dtype}
    return func(tensor, copy=asked.copy, **options)


def _parse(session: Session, positional: tuple[Any, ...], given: dict[str, Any]) -> Move:
    """Sort the arguments of the three forms: to(dtype), to(other), to(device, dtype)."""
    rest = list(positional)
    device, dtype = given.get("device"), given.get("dtype")
    names = ["non_blocking", "copy"]
    if rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif isinstance(rest[0] if rest else given.get("other"), torch.Tensor):
        other = rest.pop(0) if rest else given["other"]
        device = DEVICE if session.tags.is_cuda(other) else other.device
        dtype = other.dtype
    else:
        device = rest.pop(0) if rest else device
        names = ["dtype", *names]
    flags = {**given, **dict(zip(names, rest, strict=False))}
    return Move(
        device,
        flags["dtype"] if "dtype" in flags and names[0] == "dtype" else dtype,
        bool(flags.get("non_blocking")),
        bool(flags.get("copy")),
        flags.get("memory_format"),
    )
