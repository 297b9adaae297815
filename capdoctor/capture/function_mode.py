"""The upper net: sees every call of torch's Python API before torch does.

It answers what a plain CPU tensor would answer wrongly (``device``, ``is_cuda``...), turns
``device="cuda"`` into a tagged CPU tensor, and judges what the lower net cannot see.
"""

from __future__ import annotations

from typing import Any

from torch.overrides import TorchFunctionMode

from capdoctor.capture import factories
from capdoctor.capture.session import Session
from capdoctor.capture.tensor_methods import HANDLERS


class FunctionMode(TorchFunctionMode):
    """Routes the few calls that need it; the others go on to torch unchanged."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.handlers = HANDLERS
        self.constructors = factories.constructors()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Handle one call."""
        session = self.session
        if not session.active:
            return func(*args, **(kwargs or {}))
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(session, func, args, kwargs or {})
        if func in self.constructors or (
            kwargs and ("device" in kwargs or "pin_memory" in kwargs or "generator" in kwargs)
        ):
            return factories.make(session, func, args, dict(kwargs or {}))
        local = session.local
        outer, local.call = local.call, (func, args, kwargs or {})
        try:
            return func(*args, **kwargs) if kwargs else func(*args)
        finally:
            local.call = outer
