"""torch.compile under the virtual device: code runs as it is written, so that it can be seen."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch

from capdoctor.capture.patches import Patches


def install(patches: Patches, stack: contextlib.ExitStack) -> None:
    """Replace ``torch.compile``; functions compiled before run eagerly too."""
    patches.set(torch, "compile", _as_it_is)
    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is not None and "torch._dynamo" in sys.modules:
        stack.enter_context(set_stance("force_eager"))


def _as_it_is(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    del options
    return (lambda function: function) if model is None else model
