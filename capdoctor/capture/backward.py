"""The backward pass: hooks and custom backward functions are user code like any other."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack

from capdoctor.capture.function_mode import FunctionMode
from capdoctor.capture.patches import Patches
from capdoctor.capture.session import Session

_ENGINE = "_engine_run_backward"  # since torch 2.3


def install(patches: Patches, session: Session) -> None:
    """Keep the upper net on while gradients are computed.

    Torch takes a mode off while it handles a call, and ``Tensor.backward`` is such a call.
    """
    original = torch.autograd.__dict__.get(_ENGINE)
    if original is None:
        return

    def run(*args: Any, **kwargs: Any) -> Any:
        modes: list[Any] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if any(isinstance(mode, FunctionMode) for mode in modes):
            return original(*args, **kwargs)
        with FunctionMode(session):
            return original(*args, **kwargs)

    patches.set(torch.autograd, _ENGINE, run)
