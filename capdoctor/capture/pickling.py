"""Pickles of device tensors: copied to the host on the way out, to the device on the way in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from capdoctor.capture.factories import is_cuda_device
from capdoctor.capture.patches import Patches
from capdoctor.capture.session import Session
from capdoctor.capture.tape import tensors_of
from capdoctor.capture.transfers import to_host


def install(patches: Patches, session: Session) -> None:
    """Replace the hooks of pickle and of ``torch.load``."""
    plain_reduce: Callable[..., Any] = torch.Tensor.__reduce_ex__
    plain_load = torch.load

    def reduce(self: torch.Tensor, proto: Any) -> Any:
        if not session.active or not session.tags.is_cuda(self):
            return plain_reduce(self, proto)
        on_host = to_host(session, self.detach(), "pickle")
        with torch._C._DisableTorchDispatch():  # noqa: SLF001
            on_host.requires_grad_(self.requires_grad)
            return plain_reduce(on_host, proto)

    def load(*args: Any, **kwargs: Any) -> Any:
        place = kwargs.get("map_location", args[1] if len(args) > 1 else None)
        if not isinstance(place, str | torch.device) or not is_cuda_device(place):
            return plain_load(*args, **kwargs)
        kwargs["map_location"] = "cpu"
        return _moved(plain_load(*args[:1], *args[2:], **kwargs))

    patches.set(torch.Tensor, "__reduce_ex__", reduce)
    patches.set(torch, "load", load)


def _moved(value: Any) -> Any:
    """What was loaded, with its tensors on the device."""
    if isinstance(value, torch.Tensor):
        return value.cuda()
    if isinstance(value, dict):
        return type(value)((k, _moved(v)) for k, v in value.items())
    if isinstance(value, list | tuple) and tensors_of(value):
        return type(value)(_moved(v) for v in value)
    return value
