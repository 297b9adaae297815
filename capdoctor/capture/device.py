"""The virtual CUDA device: plain CPU tensors that keep the rules of stream capture."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

import torch

from capdoctor.capture import backward, compiling
from capdoctor.capture.dispatch_mode import DispatchMode
from capdoctor.capture.function_mode import FunctionMode
from capdoctor.capture.patches import Patches
from capdoctor.capture.session import GIB, Session
from capdoctor.capture.torch_patches import install
from capdoctor.capture.torch_version import parse_release
from capdoctor.errors import CannotDo
from capdoctor.model import Covered, Finding

DEFAULT_MEMORY = 80 * GIB


class VirtualDevice:
    """A context in which ``device="cuda"`` works without a GPU.

    Args:
        as_torch: the torch whose rules and error texts are followed, like ``2.11``; the installed
            one if None.
        memory_budget: bytes of device memory; asking for more raises ``OutOfMemoryError``.
        stop_at_first: raise at a broken rule as the device would; otherwise write it down and go
            on with the real value as if it had not happened.
        hip: name errors as a ROCm build does.
        stubs: Python stand-ins for operators that cannot run here, by name (``mylib::op``).

    Raises:
        CannotDo: another virtual device is already on in this process.
        UsageError: ``as_torch`` is no version.
    """

    _one: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        *,
        as_torch: str | None = None,
        memory_budget: int | None = None,
        stop_at_first: bool = True,
        hip: bool = False,
        stubs: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.session = Session(
            parse_release(as_torch or torch.__version__),
            hip=hip,
            memory=DEFAULT_MEMORY if memory_budget is None else memory_budget,
            stop_at_first=stop_at_first,
            stubs=stubs or {},
        )
        self._patches = Patches()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Turn the device on."""
        if not self._one.acquire(blocking=False):
            raise CannotDo(
                "A virtual device is already on in this process.", "Leave its context first."
            )
        try:
            self._turn_on()
        except BaseException:
            self._turn_off()
            raise
        return self

    def _turn_on(self) -> None:
        install(self._patches, self.session, self._watch_thread)
        compiling.install(self._patches, self._stack)
        backward.install(self._patches, self.session)
        self._patches.rebind()
        gc.callbacks.append(self.session.on_collection)
        self._stack.callback(gc.callbacks.remove, self.session.on_collection)
        self._stack.enter_context(self._nets())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Turn it off; nothing of torch stays replaced."""
        self._turn_off()

    def _turn_off(self) -> None:
        try:
            self._stack.close()
        finally:
            self.session.active = False
            self._patches.undo()
            self._one.release()

    @contextlib.contextmanager
    def _nets(self) -> Iterator[None]:
        with DispatchMode(self.session), FunctionMode(self.session):
            yield

    def _watch_thread(self, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Threads started while the device is on see it too."""

        def watched(thread: Any) -> Any:
            with self._nets():
                return run(thread)

        return watched

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Broken rules in the order in which they were met."""
        return tuple(self.session.findings)

    @property
    def covered(self) -> Covered:
        """How many operations were seen, and which operators could not be looked into."""
        return Covered(self.session.operations, tuple(self.session.unknown))
