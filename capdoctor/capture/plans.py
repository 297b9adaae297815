"""How the dispatch mode treats each operator: worked out once, from its schema and the table."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import torch

from capdoctor.capture.conditions import CONDITIONS, Args, Kwargs
from capdoctor.capture.provenance import Tags
from capdoctor.capture.torch_version import Release, in_range

_NO_KERNEL = frozenset(
    {
        "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty",
        "aten::new_empty_strided", "aten::resize_", "aten::set_", "aten::detach",
        "aten::lift_fresh", "aten::_unsafe_view", "aten::record_stream", "aten::is_pinned",
        "aten::_local_scalar_dense", "aten::equal", "aten::is_same_size",
    }
)  # fmt: skip
_HOST_ARGUMENTS = frozenset(
    {"aten::_pack_padded_sequence", "aten::set_", "aten::record_stream", "aten::copy_",
     "aten::_pad_packed_sequence", "aten::tensor_split", "aten::_ctc_loss"}
)  # fmt: skip
_INDEXING = frozenset(
    {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
)


@dataclass(frozen=True, slots=True)
class Check:
    """A rule that the operator may break. ``torch``: in which releases, in all if empty."""

    rule: str
    when: Callable[[Tags, Args, Kwargs], bool] | None
    params: Mapping[str, str]
    torch: str = ""

    def counts_in(self, release: Release) -> bool:
        """Say whether the release knows the rule for this operator."""
        return not self.torch or in_range(release, self.torch)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about one operator.

    ``kernel``: it puts work on the stream. ``fresh``: its results lie in new memory. ``factory``:
    it takes no tensor. ``pointwise`` decides the words of a device mismatch. ``writes``: positions
    of the arguments that it writes to. ``host_results``: all but the first lie on the host.
    ``like``: it makes a tensor after the model of another, and may be told a device.
    ``composite``: made of other operators; such a one is seen whole under inference mode only.
    ``random``: it draws random numbers, unless its arguments say otherwise. ``gives_tensors``: with
    ``fresh``, that it allocates.
    """

    name: str
    kernel: bool
    fresh: bool
    factory: bool
    pointwise: bool
    checks: tuple[Check, ...]
    transfer: str
    custom: bool
    arguments: tuple[str, ...]
    writes: tuple[int, ...]
    host_results: bool
    composite: bool
    like: bool
    random: bool
    gives_tensors: bool


@cache
def plan_for(op: Any) -> Plan:
    """Work out the plan of an operator overload."""
    schema = op._schema  # noqa: SLF001 - the public way to the schema does not exist
    name = schema.name
    writes = tuple(
        i
        for i, a in enumerate(schema.arguments)
        if a.alias_info is not None and a.alias_info.is_write
    )
    aliases = any(r.alias_info is not None for r in schema.returns)
    transfer = "copy" if name == "aten::copy_" else "index" if name in _INDEXING else ""
    if name == "aten::where":
        transfer = "where"
    elif not transfer and (name in _HOST_ARGUMENTS or not _gives_tensors(schema)):
        transfer = "allowed"
    return Plan(
        name=name,
        kernel=name not in _NO_KERNEL and _gives_tensors(schema) and (bool(writes) or not aliases),
        fresh=not writes and not aliases,
        factory=not any("Tensor" in str(a.type) for a in schema.arguments),
        pointwise=torch.Tag.pointwise in op.tags,
        checks=_checks(name, schema.overload_name),
        transfer=transfer,
        custom=op.namespace not in ("aten", "prims", "prim", "quantized", "profiler", "c10d"),
        arguments=tuple(a.name for a in schema.arguments),
        writes=writes,
        host_results=name == "aten::_pack_padded_sequence",
        composite=_is_composite(op.name()),
        like=name.endswith("_like") or name.startswith("aten::new_"),
        gives_tensors=_gives_tensors(schema),
        random=torch.Tag.nondeterministic_seeded in op.tags,
    )


def _is_composite(name: str) -> bool:
    has = torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001
    return bool(has(name, "CompositeImplicitAutograd"))


def _gives_tensors(schema: Any) -> bool:
    return any("Tensor" in str(r.type) for r in schema.returns)


def _checks(name: str, overload: str) -> tuple[Check, ...]:
    table = _table()
    return table.get(name, ()) + table.get(f"{name}.{overload}", ())


@cache
def _table() -> Mapping[str, tuple[Check, ...]]:
    text = (resources.files("capdoctor.capture") / "tables" / "operations.toml").read_text("utf-8")
    found: dict[str, tuple[Check, ...]] = {}
    for row in tomllib.loads(text)["operation"]:
        when = CONDITIONS[row["when"]] if "when" in row else None
        check = Check(row["rule"], when, row.get("params", {}), row.get("torch", ""))
        found[row["op"]] = (*found.get(row["op"], ()), check)
    return found
