"""Which expressions a capture refuses. Each check gives the rule and how sure it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from capdoctor.capture.static import values
from capdoctor.capture.static.infer import infer
from capdoctor.capture.static.infer_torch import device_of, is_true, keyword
from capdoctor.capture.static.scope import Scope
from capdoctor.capture.static.tables import matches
from capdoctor.capture.static.values import ASSUMED, GUESSED, INFERRED, Value

# The rule, how sure it is, and the parameter that the value came in by, if any.
Hit = tuple[str, int, str]

_SYNCHRONIZE = {
    "torch.cuda.synchronize", "torch.accelerator.synchronize", "torch.hip.synchronize",
}  # fmt: skip
_SEED = {
    "torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all",
    "torch.cuda.get_rng_state", "torch.cuda.set_rng_state",
}  # fmt: skip
_DATA_SHAPED = {"nonzero", "unique", "unique_consecutive", "masked_select", "bincount", "argwhere"}
_NUMBER_MAKERS = {"int", "float", "bool"}


def call_hits(node: ast.Call, scope: Scope) -> Iterator[Hit]:
    """Give what is illegal about one call."""
    dotted = scope.module.dotted(node.func)
    if dotted in _SYNCHRONIZE:
        yield "synchronize", INFERRED, ""
    elif dotted == "torch.distributed.barrier":
        group = keyword(node, "group") or (node.args[0] if node.args else None)
        if group is None or not _hostlike(ast.unparse(group)):
            yield "synchronize", ASSUMED, ""
    elif dotted in _SEED:
        yield "rng-state", INFERRED, ""
    elif dotted in _NUMBER_MAKERS and len(node.args) == 1:
        yield from _if_device("host-read", infer(node.args[0], scope))
    elif dotted == "print":
        for argument in node.args:
            yield from _if_device("host-read", infer(argument, scope))
    elif dotted.startswith("torch."):
        yield from _function_hits(dotted.removeprefix("torch."), node, scope)
    elif isinstance(node.func, ast.Attribute):
        yield from _method_hits(node.func, node, scope)


def _if_device(rule: str, value: Value) -> Iterator[Hit]:
    if value.on_device:
        yield rule, value.sure, value.origin


def _function_hits(name: str, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    first = infer(node.args[0], scope) if node.args else values.UNKNOWN
    if name in {"tensor", "as_tensor", "asarray"}:
        yield from _built_on_host(first, node, scope)
    elif (name == "where" and len(node.args) == 1 and not node.keywords) or name in _DATA_SHAPED:
        yield from _if_device("data-dependent-shape", first)
    elif name == "repeat_interleave":
        yield from _repeats(node, node.args[1:2] or node.args[:1], scope)
    elif name in {"equal", "allclose"}:
        yield from _if_device("host-compare", first)


def _built_on_host(first: Value, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    """``torch.tensor(python, device=...)``: built in host memory, then copied."""
    place, sure = device_of(node, scope, infer)
    if place == "device" and not first.on_device and first.kind != "tensor":
        yield "host-to-device-copy", sure, ""
    elif place == "device" and first.on_host:
        yield "host-to-device-copy", min(sure, first.sure), first.origin
    elif place == "host" and first.on_device and keyword(node, "device") is not None:
        yield "device-to-host-copy", min(sure, first.sure), first.origin


def _repeats(node: ast.Call, where: list[ast.expr], scope: Scope) -> Iterator[Hit]:
    if not where or keyword(node, "output_size") is not None:
        return
    yield from _if_device("data-dependent-shape", infer(where[0], scope))


def _method_hits(func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    base = infer(func.value, scope)
    check = _METHODS.get(func.attr)
    if check is not None:
        yield from check(base, func, node, scope)


def _reads(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    """``.item()``, ``.tolist()``, ``.numpy()``: only tensors (and numpy) have them."""
    del node, scope
    text = ast.unparse(func.value)
    if base.on_device:
        yield "host-read", base.sure, base.origin
    elif base.kind == "unknown" and not base.cls and not _hostlike(text):
        yield "host-read", GUESSED, ""


def _hostlike(text: str) -> bool:
    return matches("host_name", text.replace(".", "_")) or "np." in text or "numpy" in text


def _to_cpu(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del node, scope
    if base.on_device:
        yield "device-to-host-copy", base.sure, base.origin
    elif base.kind == "unknown" and not base.cls and not _hostlike(ast.unparse(func.value)):
        yield "device-to-host-copy", GUESSED, ""


def _moves(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func
    target = infer(keyword(node, "device") or (node.args[0] if node.args else None), scope)
    if target.kind not in {"device", "tensor"}:
        return
    quick = is_true(keyword(node, "non_blocking"))
    if target.place == "host" and base.on_device:
        yield "device-to-host-copy", min(base.sure, target.sure), base.origin
    elif target.place == "device" and base.on_host and not (base.pinned and quick):
        # A pinned source cannot be told from a parameter's name.
        yield "host-to-device-copy", GUESSED if quick else min(base.sure, target.sure), base.origin


def _to_cuda(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func, scope
    quick = is_true(keyword(node, "non_blocking"))
    if base.on_host and not (base.pinned and quick):
        yield "host-to-device-copy", base.sure, base.origin


def _copies(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func
    source = infer(node.args[0], scope) if node.args else values.UNKNOWN
    quick = len(node.args) > 1 or is_true(keyword(node, "non_blocking"))
    if base.on_device and source.on_host and not (source.pinned and quick):
        yield "host-to-device-copy", GUESSED if quick else min(base.sure, source.sure), base.origin
    elif base.on_host and source.on_device and not (base.pinned and quick):
        yield "device-to-host-copy", GUESSED if quick else min(base.sure, source.sure), base.origin


def _shapes(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func, node, scope
    yield from _if_device("data-dependent-shape", base)


def _repeats_method(
    base: Value, func: ast.Attribute, node: ast.Call, scope: Scope
) -> Iterator[Hit]:
    del base, func
    yield from _repeats(node, node.args[:1], scope)


def _compares(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func, scope
    if node.args:
        yield from _if_device("host-compare", base)


def _waits(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del node, scope
    text = ast.unparse(func.value)
    if base.kind in {"stream", "event"}:
        yield "synchronize", INFERRED, ""
    elif base.kind == "unknown" and ("stream" in text.lower() or "event" in text.lower()):
        yield "synchronize", ASSUMED, ""


def _asks(base: Value, func: ast.Attribute, node: ast.Call, scope: Scope) -> Iterator[Hit]:
    del func, node, scope
    if base.kind in {"stream", "event"}:
        yield "event-query", INFERRED, ""


_METHODS: dict[str, Callable[[Value, ast.Attribute, ast.Call, Scope], Iterator[Hit]]] = {
    "item": _reads, "tolist": _reads, "numpy": _reads, "cpu": _to_cpu, "to": _moves,
    "cuda": _to_cuda, "copy_": _copies, "repeat_interleave": _repeats_method,
    "equal": _compares, "allclose": _compares, "synchronize": _waits, "query": _asks,
    "elapsed_time": _asks, **dict.fromkeys(_DATA_SHAPED, _shapes),
}  # fmt: skip


def index_hits(node: ast.Subscript, scope: Scope) -> Iterator[Hit]:
    """Give what is illegal about reading or writing ``base[index]``."""
    base = infer(node.value, scope)
    if not base.on_device:
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        value = infer(part, scope)
        if isinstance(part, ast.List | ast.ListComp):
            yield "list-index", base.sure, base.origin
        elif value.on_device and value.boolean and isinstance(node.ctx, ast.Load):
            yield "data-dependent-shape", min(base.sure, value.sure), base.origin
        elif value.on_device and value.ndim == 0 and isinstance(part, ast.Name | ast.Call):
            continue  # a 0-dim index tensor selects on the device
        elif isinstance(part, ast.Slice):
            for bound in (part.lower, part.upper, part.step):
                yield from _if_device("host-read", infer(bound, scope))


def store_hits(target: ast.expr, source: ast.expr, scope: Scope) -> Iterator[Hit]:
    """Give what is illegal about ``x[...] = value``: a Python number into one element."""
    if not isinstance(target, ast.Subscript):
        return
    base, stored = infer(target.value, scope), infer(source, scope)
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if not base.on_device or _selects_many(parts, base, scope):
        if base.on_device and stored.on_host and stored.ndim != 0 and not stored.pinned:
            yield "host-to-device-copy", min(base.sure, stored.sure), base.origin
        return
    if stored.kind == "python" and not stored.none_only:
        known = base.ndim is not None and base.ndim == len(parts)
        if known or base.ndim is None:
            yield "scalar-setitem", base.sure if known else GUESSED, base.origin


def _selects_many(parts: list[ast.expr], base: Value, scope: Scope) -> bool:
    """Say whether the index may leave more than one element: then a number is a fill."""
    if base.ndim is not None and len(parts) < base.ndim:
        return True
    for part in parts:
        value = infer(part, scope)
        if isinstance(part, ast.Slice) or value.kind != "python" or value.none_only:
            return True
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            return base.ndim != 0
    return False


def truth_hits(test: ast.expr, scope: Scope) -> Iterator[Hit]:
    """Give what is illegal about asking for the truth of an expression."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from truth_hits(part, scope)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from truth_hits(test.operand, scope)
    elif not isinstance(test, ast.Name | ast.Attribute):
        # A bare name may be an optional flag that is annotated too narrowly.
        yield from _if_device("host-branch", infer(test, scope))
