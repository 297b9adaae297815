"""What a start of vLLM can do without, and nothing that is captured would differ for it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISVTX, S_IWGRP, S_IWOTH

from capdoctor.engines.pythons import TargetPython
from capdoctor.folders import cache_folder
from capdoctor.model import EngineSpec, Stage

_SAMPLER = "VLLM_USE_FLASHINFER_SAMPLER"
_PREFIX, _NO_WRITING = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"
# The question is about graphs, and the run ends before anything is sampled for anybody: what the
# sampler is made of matters to no such run. Any other may be about the sampler itself.
_SAMPLER_IS_BESIDE_THE_POINT = frozenset({Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE})
# A draft model samples inside the graphs; a file of arguments may ask for one.
_SPECULATES = re.compile(r"(?:--)?spec(?:ulative)?[-_]|-sc\b|--config(?:=|$)")


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
    folder = cache_folder() / "bytecode"
    if not _only_ours(folder):
        return {}
    # An image that says "write no bytecode" means: into no image. An empty value is "not set".
    return {_PREFIX: str(folder), _NO_WRITING: ""}


def forget_bytecode(variables: Mapping[str, str], sources: Path) -> None:
    """Remove what was kept for sources that no later run reads; ``variables`` are of `leanings`."""
    prefix = variables.get(_PREFIX)
    if prefix is not None:
        kept = Path(prefix).joinpath(*sources.absolute().parts[1:])
        shutil.rmtree(kept, ignore_errors=True)


def _only_ours(folder: Path) -> bool:
    """Make a folder; say whether nobody else can put a file there, for bytecode is run as it is.

    A user without a home has his cache in the temporary folder, where anybody may be first.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = [place.stat() for place in (folder.resolve(), *folder.resolve().parents)]
    except OSError:
        return False
    return all(map(_writable_by_us_alone, found))


def _writable_by_us_alone(place: os.stat_result) -> bool:
    others = S_IWOTH if place.st_gid == os.getgid() else S_IWOTH | S_IWGRP
    sticky = place.st_mode & S_ISVTX  # as the temporary folder: what is ours stays ours
    return place.st_uid in (0, os.getuid()) and bool(sticky or not place.st_mode & others)


def _has_bytecode(package: Path, target: TargetPython) -> bool:
    tag = "".join(target.version.split(".")[:2])
    return any((package / "__pycache__").glob(f"__init__.*-{tag}.*pyc"))
