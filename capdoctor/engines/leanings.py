"""What a start of vLLM can do without, and nothing that is captured would differ for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capdoctor.engines.pythons import TargetPython
from capdoctor.folders import cache_folder
from capdoctor.model import EngineSpec, Stage

_SAMPLER = "VLLM_USE_FLASHINFER_SAMPLER"
_PREFIX, _NO_WRITING = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"
# The question is about graphs, and the run ends before anything is sampled for anybody: what the
# sampler is made of matters to no such run. Any other may be about the sampler itself.
_SAMPLER_IS_BESIDE_THE_POINT = frozenset({Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE})
# A draft model samples inside the graphs.
_SPECULATES = re.compile(r"(?:--)?spec(?:ulative)?[-_]|-sc\b")


@dataclass(frozen=True, slots=True)
class Leanings:
    """Variables for the engine, over those of the caller, and a sentence on each decision."""

    variables: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()


def leanings(spec: EngineSpec, target: TargetPython, given: Mapping[str, str]) -> Leanings:
    """Say what to leave out; a variable that is in ``given`` is the user's, and stays."""
    asked = _SAMPLER in given or not _without_sampler(spec, target)
    sampler = {} if asked else {_SAMPLER: "0"}
    bytecode = _bytecode(target, given)
    changes = [f"{_SAMPLER}=0: its kernels are not compiled, nothing is sampled"] * bool(sampler)
    changes += [f"bytecode is kept in {bytecode.get(_PREFIX)}: vllm has none"] * bool(bytecode)
    return Leanings({**sampler, **bytecode}, tuple(changes))


def _without_sampler(spec: EngineSpec, target: TargetPython) -> bool:
    cuda = (target.torch_build or "").startswith("cuda")
    words = (*spec.engine_args, *spec.extra_args)
    speculates = any(_SPECULATES.match(word) for word in words)
    return cuda and spec.stop_after in _SAMPLER_IS_BESIDE_THE_POINT and not speculates


def _bytecode(target: TargetPython, given: Mapping[str, str]) -> dict[str, str]:
    """Keep bytecode where no user meets it, if the installation came without.

    Python checks bytecode against its source each time, so what is kept is never stale. Each of
    the three or four processes of a start would else compile some three thousand files.
    """
    if target.vllm is None or _PREFIX in given or _has_bytecode(target.vllm.package, target):
        return {}
    # An image that says "write no bytecode" means: into no image. An empty value is "not set".
    return {_PREFIX: str(cache_folder() / "bytecode"), _NO_WRITING: ""}


def _has_bytecode(package: Path, target: TargetPython) -> bool:
    tag = "".join(target.version.split(".")[:2])
    return any((package / "__pycache__").glob(f"__init__.*-{tag}.*pyc"))
