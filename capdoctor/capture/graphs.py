"""CUDAGraph on the state machine: begins and ends captures, and really replays them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from typing import Any, ClassVar

from capdoctor.capture.error_modes import Mode
from capdoctor.capture.generators import check_outside, default_generator
from capdoctor.capture.session import Session
from capdoctor.capture.state import Capture, Fault
from capdoctor.capture.tape import Tape

_pools = itertools.count(1)


def graph_pool_handle() -> tuple[int, int]:
    """A new token for a memory pool."""
    return 0, next(_pools)


class CUDAGraph:
    """A graph of the virtual device."""

    session: ClassVar[Session]

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph
        self._capture: Capture | None = None
        self._tape: Tape | None = None
        self._owner = self.session  # another device may be on when the graph goes
        self._stream = self.session.local.stream
        self._pool: tuple[int, int] = (0, 0)
        self._generators: list[Any] = []

    def register_generator_state(self, generator: Any) -> None:
        """Let the graph read the state of a generator."""
        self.session.forbid("rng_register", "register_generator_state")
        if generator not in self._generators:
            self._generators.append(generator)

    def capture_begin(
        self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global", **_: Any
    ) -> None:
        """Start to capture the current stream.

        Raises:
            RuntimeError: an unknown error mode, in torch's words.
        """
        session = self.session
        operation = "CUDAGraph.capture_begin"
        if capture_error_mode not in list(Mode):
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got"
                f" {capture_error_mode}"
            )
        if self._tape is not None:
            session.judge(Fault("graph_in_use"), operation)
            return
        stream, thread = session.local.stream, threading.get_ident()
        begun = session.machine.begin(stream, Mode(capture_error_mode), thread)
        if isinstance(begun, Fault):
            session.judge(begun, operation)
            self._tape = Tape()  # going on: what is inside belongs to the outer capture, if any
            return
        self._capture, self._stream = begun, stream
        self._pool = pool or graph_pool_handle()
        session.tapes[begun] = Tape()
        session.graph_generators[begun] = (default_generator(), *self._generators)
        for generator in session.graph_generators[begun]:
            generator.capturing = True

    def capture_end(self) -> None:
        """End the capture; the graph can be replayed if nothing was wrong with it."""
        session, capture = self.session, self._capture
        operation = "CUDAGraph.capture_end"
        if capture is None or capture.over:
            self._end_of_nothing(operation)
            return
        if session.local.stream != self._stream:
            session.judge(Fault("capture_end_other_stream"), operation)
        fault = session.machine.end(self._stream, threading.get_ident())
        tape = session.tapes.pop(capture)
        tape.restore()
        self._release_generators(fault, session.graph_generators.pop(capture))
        if fault is None and not self.keep_graph:
            fault = session.machine.unsafe(threading.get_ident(), "instantiate_in_capture")
        session.judge(fault, operation)
        self._tape = tape
        session.graph_tapes.add(tape)

    def _release_generators(self, fault: Fault | None, generators: Iterable[Any]) -> None:
        """Take the generators out of the capture; older torch leaves them in a failed one."""
        session = self.session
        left = fault is not None and session.stop_at_first
        if left and not session.rule("rng_outside_capture").legal_anyway:
            return
        for generator in generators:
            generator.capturing = False

    def _end_of_nothing(self, operation: str) -> None:
        """Torch compares streams first; a graph remembers the one it was made under."""
        session = self.session
        if self._tape is not None and self._capture is None:
            return  # its beginning was refused, and the run went on
        if session.local.stream != self._stream:
            session.judge(Fault("capture_end_other_stream"), operation)
        begun = self._capture is not None
        rule = "capture_end_without_begin" if begun else "capture_end_never_begun"
        session.judge(Fault(rule), operation)

    def instantiate(self) -> None:
        """Make a kept graph executable."""
        session = self.session
        fault = session.machine.unsafe(threading.get_ident(), "instantiate_in_capture")
        session.judge(fault, "CUDAGraph.instantiate")

    def replay(self) -> None:
        """Do the captured operations again, on whatever their memory holds now."""
        session = self.session
        if self._tape is None:
            session.judge(Fault("replay_without_graph"), "CUDAGraph.replay")
            return
        session.forbid("replay_in_capture", "CUDAGraph.replay")
        if not session.capturing():
            check_outside(self._tape.drawn, session, "CUDAGraph.replay")
        self._tape.replay()

    def reset(self) -> None:
        """Forget the graph and its memory."""
        session = self.session
        if self._tape is not None and self._capture is not None:
            fault = session.machine.unsafe(threading.get_ident(), "free_graph_in_capture")
            session.write_down(fault, "CUDAGraph.reset", {})  # the device raises nothing here
        self._tape = self._capture = None

    def __del__(self) -> None:
        """Destroying a graph breaks a running capture as reset does.

        Not when the garbage collector does it: it comes at another time on every run, and would
        make what is found here a matter of chance.
        """
        owner = getattr(self, "_owner", None)
        if owner is None or self._tape is None or not owner.active or owner.collecting:
            return
        if owner is type(self).session:
            self.reset()

    def pool(self) -> tuple[int, int]:
        """The token of the graph's memory pool."""
        if self._tape is None:
            self.session.judge(Fault("pool_without_graph"), "CUDAGraph.pool")
        return self._pool

    def raw_cuda_graph(self) -> int:
        """A number in place of the driver's handle; the graph must be kept (torch's words)."""
        if not self.keep_graph:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized"
                " with keep_graph=true"
            )
        return id(self._tape)

    def raw_cuda_graph_exec(self) -> int:
        """A number in place of the driver's handle."""
        return id(self)

    def enable_debug_mode(self) -> None:
        """Accepted; there is nothing more to see."""

    def debug_dump(self, debug_path: str) -> None:
        """Write the names of the captured operations, one a line."""
        steps = [] if self._tape is None else self._tape.steps
        with open(debug_path, "w", encoding="utf-8") as out:  # noqa: PTH123 - as torch takes it
            out.writelines(f"{step.function}\n" for step in steps)
