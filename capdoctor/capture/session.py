"""What the shims of one virtual device share: tags, the state machine, the judgement of faults."""

from __future__ import annotations

import builtins
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from capdoctor.capture.provenance import Tags
from capdoctor.capture.rules import Rule, rules
from capdoctor.capture.stacks import place_of, user_stack
from capdoctor.capture.state import LEGACY_STREAM, Capture, Fault, Machine, Status
from capdoctor.capture.torch_version import Release
from capdoctor.model import Finding, Frame, WouldRaise

if TYPE_CHECKING:
    from capdoctor.capture.tape import Tape

GIB = 1 << 30
DEVICE = torch.device("cuda", 0)


class Local(threading.local):
    """What each thread has of its own."""

    stream: int = LEGACY_STREAM
    call: tuple[Any, tuple[Any, ...], Mapping[str, Any]] | None = None
    want: str | None = None
    exempt: frozenset[str] = frozenset()


class Session:
    """One virtual device while it is on.

    A broken rule is written down in ``findings``. Then ``stop_at_first`` decides: raise as the
    device would, or go on with the real value.
    """

    def __init__(
        self,
        release: Release,
        *,
        hip: bool,
        memory: int,
        stop_at_first: bool,
        stubs: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.release = release
        self.hip = hip
        self.memory = memory
        self.stop_at_first = stop_at_first
        self.stubs = stubs
        self.tags = Tags()
        self.machine = Machine()
        self.local = Local()
        self.tapes: dict[Capture, Tape] = {}
        self.graph_tapes: weakref.WeakSet[Tape] = weakref.WeakSet()
        self.findings: list[Finding] = []
        self.graph_generators: dict[Capture, tuple[Any, ...]] = {}
        self.operations = 0
        self.unknown: dict[str, None] = {}
        self.active = True
        self.collecting = False

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        """Know when the garbage collector is at work."""
        del info
        self.collecting = phase == "start"

    def capturing(self) -> bool:
        """Say whether the current stream takes part in a capture."""
        return self.machine.capture_of(self.local.stream) is not None

    def tape(self) -> Tape | None:
        """The tape of the capture that the current stream takes part in."""
        capture = self.machine.capture_of(self.local.stream)
        return None if capture is None else self.tapes.get(capture)

    def registered(self, capture: Capture) -> tuple[Any, ...]:
        """Generators whose state the graph of this capture reads."""
        return self.graph_generators.get(capture, ())

    def rule(self, name: str) -> Rule:
        """A rule as the followed torch has it."""
        return rules()[name].for_torch(self.release)

    def judge(self, fault: Fault | None, operation: str, **params: str) -> None:
        """Write a fault down, and raise under ``stop_at_first``; nothing happens for None."""
        rule = self.write_down(fault, operation, params)
        if rule is not None and self.stop_at_first:
            raise self.error(rule, params)

    def write_down(
        self, fault: Fault | None, operation: str, params: Mapping[str, str]
    ) -> Rule | None:
        """Write a fault down without raising; give the rule, None if there is nothing wrong."""
        rule = None if fault is None else self.rule(fault.rule)
        if fault is None or rule is None or rule.legal_anyway:
            return None
        self.note(rule, operation, rule.text(self.release, params, hip=self.hip))
        if self.stop_at_first and rule.invalidates:
            self.machine.invalidate(fault)
        return rule

    def forbid(self, rule: str, operation: str, **params: str) -> None:
        """Judge something that breaks the capture of the current stream, if there is one."""
        capture = self.machine.capture_of(self.local.stream)
        if capture is not None:
            self.judge(Fault(rule, (capture,)), operation, **params)

    def read_host(self, rule: str, operation: str) -> None:
        """Judge an operation that copies to the host and waits for the current stream."""
        self.judge(
            self.machine.wait_for_stream(self.local.stream, threading.get_ident(), rule), operation
        )

    def read_host_or_copy(self, rule: str, operation: str, params: dict[str, str]) -> None:
        """Judge an operator of the table: inside a capture by its rule, outside as a host wait."""
        capture = self.machine.capture_of(self.local.stream)
        if capture is None:
            fault = self.machine.unsafe(threading.get_ident(), "host_read")
        elif capture.status is Status.INVALIDATED:
            fault = Fault("after_invalidation")
        else:
            fault = Fault(rule, (capture,))
        self.judge(fault, operation, **params)

    def live_tapes(self) -> list[Tape]:
        """The tapes of all graphs that hold memory."""
        return list(self.graph_tapes)

    def allocate(self, operation: str) -> None:
        """Make room for a result on the current stream: newer torch looks at the capture first."""
        capture = self.machine.capture_of(self.local.stream)
        if capture is not None and capture.status is Status.INVALIDATED:
            self.judge(Fault("allocation_after_invalidation"), operation)

    def launch(self, operation: str) -> None:
        """Put a kernel on the current stream."""
        self.judge(self.machine.launch(self.local.stream), operation)

    def error(self, rule: Rule, params: Mapping[str, str]) -> BaseException:
        """The exception that the followed torch would raise, ``error_code`` included."""
        name = rule.error_type(self.release)
        kind: Any = getattr(torch, name, None) or getattr(builtins, name, RuntimeError)
        text = rule.text(self.release, params, hip=self.hip)
        if kind is UnicodeDecodeError:
            return _undecodable(text)
        error: BaseException = kind(text)
        if rule.code is not None and name == "AcceleratorError":
            error.error_code = rule.code  # type: ignore[attr-defined]
        return error

    def note(self, rule: Rule, operation: str, text: str) -> None:
        """Write a broken rule down at the user's own line."""
        stack = user_stack()
        at = place_of(stack) or Frame("", 0, "")
        self.findings.append(
            Finding(
                rule=rule.id,
                file=at.file,
                line=at.line or 0,
                function=at.function or "",
                operation=operation,
                message=f"{operation}: {text.splitlines()[0]}",
                would_raise=WouldRaise(rule.error_type(self.release), rule.code, text),
                invalidates=rule.invalidates,
                stack=stack,
                legal_way=rule.legal,
            )
        )


def _undecodable(text: str) -> UnicodeDecodeError:
    """What Python raises in place of a message that holds a byte that is no text."""
    try:
        text.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as error:
        return error
    raise AssertionError(f"{text!r} can be decoded")
