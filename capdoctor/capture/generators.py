"""Random generators of the virtual device: CPU generators that keep the device's rules."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import torch

from capdoctor.capture.plans import Plan
from capdoctor.capture.session import DEVICE, Session
from capdoctor.capture.state import Fault

_PINNED_GUARDED = (2, 10)  # the release whose host allocator knows captures


class CudaGenerator(torch._C.Generator):  # noqa: SLF001 - torch.Generator itself is replaced
    """A generator that says it lies on the device; numbers come from a CPU generator.

    ``capturing``: a capture that reads its state is on, or ended by an error.
    """

    session: ClassVar[Session]
    capturing: bool = False

    def __new__(cls, device: Any = None) -> Self:
        """Make one; not allowed while the current stream captures."""
        del device
        cls.session.forbid("rng_new_generator", "torch.Generator")
        return super().__new__(cls)

    def __init__(self, device: Any = None) -> None:
        del device
        super().__init__()

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The virtual device."""
        return DEVICE

    def manual_seed(self, seed: int) -> Self:
        """Seed it; inside a capture only the seed that it has is accepted."""
        if seed != super().initial_seed():
            self.session.forbid("rng_seed", "manual_seed", call="set_current_seed")
        super().manual_seed(seed)
        return self

    def seed(self) -> int:
        """Seed it from the system."""
        self.session.forbid("rng_call", "seed", call="seed")
        return super().seed()

    def clone_state(self) -> torch._C.Generator:
        """Copy it."""
        self.session.forbid("rng_call", "clone_state", call="clone_impl")
        return super().clone_state()

    def graphsafe_get_state(self) -> Self:
        """A handle on the state; allowed everywhere."""
        return self

    def graphsafe_set_state(self, state: torch._C.Generator) -> Self:
        """Take over the state of another generator."""
        super().set_state(torch._C.Generator.get_state(state))  # noqa: SLF001
        return self

    def get_state(self) -> torch.Tensor:
        """The state as bytes on the host."""
        self._must_be_registered("get_state")
        self.session.forbid("rng_get_state", "get_state")
        return super().get_state()

    def set_state(self, new_state: torch.Tensor) -> torch._C.Generator:
        """Take a state over."""
        self._must_be_registered("set_state")
        self.session.forbid("rng_set_state", "set_state")
        return super().set_state(new_state)

    def _must_be_registered(self, operation: str) -> None:
        session = self.session
        capture = session.machine.capture_of(session.local.stream)
        if capture is not None and self not in session.registered(capture):
            session.forbid("rng_state_unregistered", operation)


class _GeneratorType(type):
    """Lets ``isinstance(g, torch.Generator)`` go on working while the name is replaced."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)  # noqa: SLF001


class Generator(metaclass=_GeneratorType):
    """What ``torch.Generator`` names while the device is on."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """A virtual generator for "cuda", a plain one otherwise."""
        from capdoctor.capture.factories import is_cuda_device

        if is_cuda_device(device):
            return CudaGenerator()
        return torch._C.Generator(device)  # noqa: SLF001


def check_generator(
    session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Judge the generator that a random operation was given.

    Raises:
        RuntimeError: a host generator for device numbers, as torch says it.
    """
    given = kwargs.get("generator")
    if given is None:
        return
    on_device = isinstance(given, CudaGenerator)
    if not on_device:
        device = kwargs.get("device")
        wanted = device is not None and torch.device(device).type == "cuda"
        if wanted or any(isinstance(a, torch.Tensor) and session.tags.is_cuda(a) for a in args):
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        return
    capture = session.machine.capture_of(session.local.stream)
    name = f"torch.{getattr(func, '__name__', 'random operation')}"
    if capture is None:
        check_outside((given,), session, name)
    elif given is not default_generator() and given not in session.registered(capture):
        session.judge(Fault("rng_unregistered", (capture,)), name)
    else:
        _remember(session, given)


def check_draw(
    session: Session, plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Judge an operator that draws from the default generator."""
    default = default_generator()
    if not default.capturing:
        return
    given = {
        **dict.fromkeys(plan.arguments),
        **dict(zip(plan.arguments, args, strict=False)),
        **kwargs,
    }
    if given.get("generator") is not None or not _draws(given):
        return
    if session.capturing():
        _remember(session, default)
    else:
        check_outside((default,), session, plan.name)


def _remember(session: Session, generator: Any) -> None:
    tape = session.tape()
    if tape is not None:
        tape.drawn.setdefault(generator)


def _draws(given: Mapping[str, Any]) -> bool:
    """Operators with a dropout, and those for training, may draw nothing; so do empty tensors."""
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    if any(name in given and not given[name] for name in ("dropout", "dropout_p")):
        return False
    first = given.get("self", given.get("input"))
    return not isinstance(first, torch.Tensor) or first.numel() > 0


def check_outside(generators: Iterable[Any], session: Session, operation: str) -> None:
    """Judge a draw outside a capture: the generator must not be part of one.

    It still is when another stream captures, and, for older torch, after a capture that failed.
    """
    if any(generator.capturing for generator in generators):
        session.judge(Fault("rng_outside_capture"), operation)


def default_generator() -> Any:
    """The generator that device operations use when none is given."""
    return torch.cuda.default_generators[0]


def check_pinned_allocation(session: Session) -> None:
    """Judge a pinned allocation: guarded in the own capture, unsafe from another thread."""
    thread = threading.get_ident()
    capture = session.machine.capture_of(session.local.stream)
    if capture is not None:
        if session.release < _PINNED_GUARDED:
            session.judge(Fault("pinned_allocation", (capture,)), "pin_memory")
        return
    session.judge(session.machine.unsafe(thread, "pinned_allocation"), "pin_memory")
