"""Installs the tracer in a process, turns its hooks on while something captures, and removes it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import torch
import torch.cuda.graphs

from . import operators
from .calls import Hidden
from .guard import Guard
from .journal import Journal
from .methods import Methods
from .new_threads import NewThreads
from .operators import Operators
from .profile_hook import ProfileHook
from .raises import Raises
from .skip_compiler import skip_own_code
from .status import DriverStatus
from .watch import Watch


class Tracer:
    """The tracer of one process.

    Args:
        folder: where its journal goes; made if it is missing.
        source: what is asked about streams, as ``status.DriverStatus`` is; the driver if None.
        shims, natives: files of a virtual device, as ``calls.Hidden`` takes them.
    """

    def __init__(
        self,
        folder: str,
        source: Any = None,
        shims: tuple[str, ...] = (),
        natives: tuple[str, ...] = (),
    ) -> None:
        torch_folder = str(Path(torch.__file__).parent) + os.sep
        self.journal = Journal(folder)
        self.guard = Guard(self.journal)
        self.hidden = Hidden(torch_folder, shims, natives)
        self.watch = Watch(self.journal, source, self.hidden)
        self.methods = Methods(self.watch, self.guard, self._begun, self._ending)
        self.raises = Raises(self.watch, self.guard, self.hidden)
        self.new_threads = NewThreads(self.watch, self.guard)
        self._local = _Local()
        self._first = True

    def install(self) -> None:
        """Wrap the methods of the classes that ``torch.cuda`` offers now. Touches no device."""
        self.journal.open()
        self.methods.wrap(torch.cuda.graphs.CUDAGraph, torch.cuda.Event, torch.cuda.Stream)

    def remove(self) -> None:
        """Take everything out again."""
        self.guard.run(self.watch.tell_count)
        self.guard.aside = True
        self.methods.undo()
        self.raises.stop()
        self.new_threads.stop()
        self._leave_thread()

    def _begun(self, graph: Any, frame: Any) -> None:
        if self._first:
            self._start_process_hooks()
        self.watch.begun(graph, torch.cuda.current_stream().cuda_stream)
        self.new_threads.start()
        local = self._local
        if local.mode is None:
            local.hook = ProfileHook(self.watch, self.guard, self.hidden, self._idle)
            local.mode = Operators(self.watch, self.guard, local.hook)
        operators.enter(local.mode)
        local.hook.start(frame)

    def _start_process_hooks(self) -> None:
        self._first = False
        if self.watch.source is None:
            self.watch.source = DriverStatus()
        skip_own_code()
        self.raises.start()

    def _ending(self, capture: Any) -> None:
        """Take off what is only for the time of a capture."""
        left = [other for other in self.watch.running if other is not capture]
        if not left or self.guard.aside:
            self.new_threads.stop()
        thread = threading.get_ident()
        if self.guard.aside or all(other.thread != thread for other in left):
            self._leave_dispatch()

    def _leave_dispatch(self) -> None:
        if self._local.mode is not None:
            operators.leave(self._local.mode)

    def _idle(self) -> None:
        """The function that captured has returned."""
        self.watch.tell_count()
        self._leave_dispatch()

    def _leave_thread(self) -> None:
        self._leave_dispatch()
        if self._local.hook is not None:
            self._local.hook.stop()


class _Local(threading.local):
    mode: Operators | None = None
    hook: Any = None
