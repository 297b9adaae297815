"""Signals that ask to stop, taken over for the time of a run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from capdoctor.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Interrupts:
    """Catch SIGINT, SIGTERM and SIGHUP while inside ``with``; what was set before comes back.

    The first one raises `Interrupted` where it comes, with ``resume`` as its hint; inside `noted`
    it only sets ``caught`` and makes ``descriptor`` readable, and those that follow the first do
    no more than that anywhere, so that a clean-up is not cut short. A signal that the caller
    ignores (``nohup``) stays ignored. Outside the main thread nothing can be caught: whoever runs
    an engine there has to end it by an exception from its listener.
    """

    def __init__(self, resume: str = "") -> None:
        self.caught: signal.Signals | None = None
        self.resume = resume
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before: dict[signal.Signals, _Handler] = {}
        self._noting = False

    def __enter__(self) -> Self:
        """Take the signals over."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN and before is not None:
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Only note signals for a while: whoever is inside reacts to ``caught`` by itself."""
        self._noting = True
        try:
            yield
        finally:
            self._noting = False

    def check(self) -> None:
        """Raise what a signal that was noted means.

        Raises:
            Interrupted: one came.
        """
        if self.caught is not None:
            raise Interrupted(
                f"interrupted by {self.caught.name} while no engine was running", self.resume
            )

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        first = self.caught is None
        self.caught = self.caught or signal.Signals(number)
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            return  # many signals: the first is enough
        if first and not self._noting:
            self.check()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the signals back."""
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(self.descriptor)
        os.close(self._writer)
