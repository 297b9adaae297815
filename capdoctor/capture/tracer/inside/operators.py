"""The dispatch mode: sees every operator, also those of slots like ``x[0] = 0`` and ``bool(x)``.

It looks into operators of libraries whose kernel is Python: the mode is off while a kernel runs,
so it is put back on and the kernel called below it.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from .guard import Guard
from .names import operator_name
from .profile_hook import ProfileHook
from .watch import Watch

_push = torch._C._push_on_torch_dispatch_stack  # noqa: SLF001
_pop = torch._C._pop_torch_dispatch_stack  # noqa: SLF001
_depth = torch._C._len_torch_dispatch_stack  # noqa: SLF001
_at = torch._C._get_dispatch_stack_at  # noqa: SLF001
_BUILTIN = ("aten", "prims", "prim", "inductor", "c10d", "_c10d_functional")
_PYTHON_KERNEL = re.compile(
    r"^(CUDA|CPU|CompositeExplicitAutograd)[^:]*: registered at .+\.py:\d+ ::", re.MULTILINE
)


_KEYS: dict[int, tuple[Any, Any]] = {}


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells the watch of every operator that runs under it."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code stays compiled under it."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No wrapper around each call; the code is marked for the compiler instead."""
        return False

    def __init__(self, watch: Watch, guard: Guard, hook: ProfileHook) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch = watch
        self.guard = guard
        self.hook = hook
        # False while a kernel runs for which torch has set the mode aside: what is pushed then
        # would be taken off by whoever leaves next.
        self.may_enter = True

    def belongs_above(self, other: Any) -> bool:
        """Say whether another mode is one of torch's own layers or the virtual device."""
        if getattr(other, "_mode_key", None) is not None:
            return True
        code = getattr(type(other).__torch_dispatch__, "__code__", None)
        return code is not None and self.hook.hidden.is_own(code)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run one operator, with a look at the capture before and after.

        Few calls, since the profile hook sees each; and not the operator's Python wrapper, whose
        frame would stand in every traceback.
        """
        call = func._op if type(func) is OpOverload else func  # noqa: SLF001
        watch = self.watch
        outer = self.may_enter
        if self.guard.aside or not watch.running:
            return self._pass(call, args, kwargs or {})
        pending = self.hook.pending
        try:
            if watch.broken() is not None:
                watch.before(func, sys._getframe())  # noqa: SLF001
            known = _KEYS.get(id(func)) or _remember(func)
        except Exception:  # noqa: BLE001 - the documented boundary
            self.guard.fault()
            return self._pass(call, args, kwargs or {})
        # Another mode below wants to see it too.
        self.may_enter = known[1] is not None and not _depth()
        try:
            if not self.may_enter:
                result = call(*args, **(kwargs or {}))
            else:
                result = self._look_into(known[1], func, args, kwargs or {})
        except BaseException as error:
            self.guard.run(self._raised, func, sys._getframe(), error, pending)  # noqa: SLF001
            raise
        finally:
            self.may_enter = outer
        try:
            if watch.forked or watch.broken() is not None:
                self._after(func, sys._getframe(), pending)  # noqa: SLF001
        except Exception:  # noqa: BLE001 - the documented boundary
            self.guard.fault()
        return result

    def _pass(self, call: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        outer, self.may_enter = self.may_enter, False
        try:
            return call(*args, **kwargs)
        finally:
            self.may_enter = outer

    def _after(self, func: Any, frame: Any, pending: Any) -> None:
        for capture in self.watch.running:
            if capture.joins.forks:
                stream = torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())  # noqa: SLF001
                capture.joins.launch(stream)
        self.watch.after(func, frame, None, pending)

    def _raised(self, func: Any, frame: Any, error: BaseException, pending: Any) -> None:
        if not self.watch.after(func, frame, error, pending):
            self.watch.suspect(func, frame, error, pending)

    def _look_into(self, key: Any, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        enter(self)
        try:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)  # noqa: SLF001
        finally:
            leave(self)


def enter(mode: Operators) -> None:
    """Put the mode on the calling thread's stack, below those of the program, if it is not there.

    There it sees what reaches the device, and a mode of the program's that was entered before the
    capture and is left inside it takes off itself and not this one.
    """
    if not mode.may_enter or _is_on(mode):
        return
    above = []
    while _depth() and not mode.belongs_above(_at(_depth() - 1)):
        above.append(_pop(None))
    for other in (mode, *reversed(above)):
        _push(other)


def leave(mode: Operators) -> None:
    """Take the mode off wherever it lies; modes that were entered later stay in their order."""
    if not _is_on(mode):
        return
    above = []
    while True:
        top = _pop(None)
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        _push(other)


def _is_on(mode: Operators) -> bool:
    return any(_at(index) is mode for index in range(_depth()))


def _remember(func: Any) -> tuple[Any, Any]:
    """Find an operator's key once. By identity: an operator's own hash is Python code."""
    known = _KEYS[id(func)] = (func, _find_python_key(func))
    return known


def _find_python_key(func: Any) -> Any | None:
    """The dispatch key of the kernel that runs on the device, if that kernel is Python."""
    if not isinstance(func, OpOverload) or func.namespace in _BUILTIN:
        return None
    listing = torch._C._dispatch_dump(operator_name(func))  # noqa: SLF001
    found = {match.group(1) for match in _PYTHON_KERNEL.finditer(listing)}
    key = "CUDA" if torch.version.cuda or torch.version.hip else "CPU"
    if key in found or "CompositeExplicitAutograd" in found:
        return getattr(torch._C.DispatchKey, key)  # noqa: SLF001
    return None
