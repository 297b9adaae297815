"""The lower net: sees every operator, tags results, keeps the rules, records for replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from capdoctor.capture import generators, memory, mixing
from capdoctor.capture.custom_ops import look_into
from capdoctor.capture.plans import Plan, plan_for
from capdoctor.capture.session import Session
from capdoctor.capture.tape import Tape, tensors_of

_address = torch._C._storage_address  # type: ignore[attr-defined]  # noqa: SLF001
_Tensor = torch.Tensor
_NONE: Mapping[str, Any] = {}


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs each operator on the CPU tensors as they are, under the rules of the device."""

    def __init__(self, session: Session) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.session = session

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No wrapper around each call: the compiler never sees code of a virtual device."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Sort an operator: host work passes, device work goes by the rules."""
        kwargs = kwargs or _NONE
        session = self.session
        if not session.active:
            return func(*args, **kwargs)
        if not isinstance(func, OpOverload):
            session.unknown.setdefault(str(func))  # a higher-order operator runs unseen
            return func(*args, **kwargs)
        return self._sort(session, plan_for(func), func, args, kwargs)

    def _sort(
        self,
        session: Session,
        plan: Plan,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        if plan.composite and not plan.checks and not plan.custom:
            with self:
                return func.decompose(*args, **kwargs)
        on_device, host = operands(session, args, kwargs)
        if plan.custom:
            return look_into(self, func, args, kwargs, on_device=on_device)
        if plan.factory:
            return _make(session, plan, func, args, kwargs)
        if not on_device:
            return func(*args, **kwargs)
        return _run(session, plan, func, args, kwargs, host)


def operands(
    session: Session, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[bool, list[torch.Tensor]]:
    """Whether any operand lies on the device, and those that lie on the host."""
    tagged = session.tags.cuda
    on_device, host = False, []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, _Tensor):
            inner: Any = (value,)
        elif type(value) is list or type(value) is tuple:
            inner = value
        else:
            continue
        for item in inner:
            if isinstance(item, _Tensor):
                try:
                    found = _address(item) in tagged
                except (RuntimeError, NotImplementedError):
                    found = session.tags.is_cuda(item)
                if found:
                    on_device = True
                else:
                    host.append(item)
    return on_device, host


def _run(
    session: Session,
    plan: Plan,
    func: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    host: list[torch.Tensor],
) -> Any:
    session.operations += 1
    if host and plan.transfer != "allowed":
        mixing.check(session, plan, args, host)
    if plan.fresh and plan.gives_tensors:
        session.allocate(plan.name)
    _judge(session, plan, args, kwargs)
    if plan.random:
        generators.check_draw(session, plan, args, kwargs)
    tape = session.tape()
    if plan.kernel:
        session.launch(plan.name)
        if tape is not None and plan.writes:
            _save_written(tape, plan, args, kwargs)
    result = func(*args, **kwargs)
    made: tuple[torch.Tensor, ...] = ()
    if plan.fresh and not (session.local.want == "cpu" and plan.like):
        made = (result,) if type(result) is _Tensor else tensors_of(result)
        memory.claim(session, made[:1] if plan.host_results else made)
    if tape is not None:
        tape.keep(made)
        if plan.kernel:
            tape.add(func, args, kwargs, made)
    return result


def _judge(session: Session, plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """The rules of the table for this operator."""
    if plan.name in session.local.exempt:
        return
    for check in plan.checks:
        if not check.counts_in(session.release):
            continue
        if check.when is None or check.when(session.tags, args, kwargs):
            session.read_host_or_copy(check.rule, plan.name, dict(check.params))


def _save_written(tape: Tape, plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for position in plan.writes:
        value = args[position] if position < len(args) else kwargs.get(plan.arguments[position])
        for tensor in tensors_of(value):
            tape.about_to_write(tensor)


def _make(
    session: Session, plan: Plan, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Create a tensor: on the device if the call says so, or if torch makes it for its own use."""
    on_device = _made_on_device(session)
    if not on_device:
        return func(*args, **kwargs)
    session.operations += 1
    memory.check_request(session, args, kwargs)
    session.allocate(plan.name)
    if plan.random:
        generators.check_draw(session, plan, args, kwargs)
    if plan.kernel:
        session.launch(plan.name)
    result = func(*args, **kwargs)
    made = tensors_of(result)
    memory.claim(session, made)
    tape = session.tape()
    if tape is not None:
        tape.keep(made)
        if plan.kernel:
            tape.add(func, args, kwargs, made)
    return result


def _made_on_device(session: Session) -> bool:
    local = session.local
    if local.want is not None:
        return local.want == "cuda"
    if local.call is None:
        return False
    _func, args, kwargs = local.call
    on_device, _host = operands(session, args, kwargs)
    return on_device
