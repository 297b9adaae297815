"""The modules that vLLM's index group and HiSparse runtime import, as far as they matter.

What decides the crash is real: ``in_piecewise_cudagraph`` is taken from the tree's own
``forward_context.py``. Streams, the forward context and the eager break are the scenario's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from capdoctor.capture.checker.stubs import StubModule
from capdoctor.capture.scenarios.drive import Forward, ForwardContext, GraphMode, run_eagerly
from capdoctor.capture.scenarios.sources import define, function_of
from capdoctor.capture.scenarios.watched import Watch

_HELPER = "in_piecewise_cudagraph"


def vllm_stubs(
    package: Path, watch: Watch, forward: Forward, convert: Callable[..., Any]
) -> dict[str, ModuleType]:
    """Give the modules by their dotted names."""
    return {
        "vllm.config": _module("vllm.config", CUDAGraphMode=GraphMode),
        "vllm.config.compilation": _module("vllm.config.compilation", CUDAGraphMode=GraphMode),
        "vllm.forward_context": _forward_context(package, forward),
        "vllm.utils.torch_utils": _module(
            "vllm.utils.torch_utils", current_stream=watch.current_stream
        ),
        "vllm.v1.attention.backends.mla.sparse_utils": _module(
            "vllm.v1.attention.backends.mla.sparse_utils",
            triton_convert_req_index_to_global_index=convert,
        ),
        "vllm.compilation.breakable_cudagraph": _module(
            "vllm.compilation.breakable_cudagraph",
            eager_break_during_capture=_eager_break(forward),
        ),
    }


def _module(name: str, **content: Any) -> ModuleType:
    module = StubModule(name)
    module.__dict__.update(content)
    return module


def _forward_context(package: Path, forward: Forward) -> ModuleType:
    """Give a forward context in which only what the tree defines exists."""

    def get_forward_context() -> ForwardContext:
        if forward.context is None:
            raise AssertionError("Forward context is not set.")
        return forward.context

    def is_forward_context_available() -> bool:
        return forward.context is not None

    module = StubModule("vllm.forward_context", strict=True)
    module.__dict__.update(
        ForwardContext=ForwardContext,
        get_forward_context=get_forward_context,
        is_forward_context_available=is_forward_context_available,
        CUDAGraphMode=GraphMode,
    )
    path = package / "forward_context.py"
    helper = function_of(path, _HELPER)
    if helper is not None:
        define(helper, path, module.__dict__)
    return module


def _eager_break(forward: Forward) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give the decorator whose functions run between the segments of a piecewise capture."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return run_eagerly(lambda: function(*args, **kwargs), forward)

        return wrapper

    return decorate
