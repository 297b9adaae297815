"""Run one scenario from start to end, and write its log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.scenarios import drive
from capdoctor.capture.scenarios.drive import Forward, GraphMode, Model
from capdoctor.capture.scenarios.fold_indptr import SHAPES, FoldIndptr, load_function
from capdoctor.capture.scenarios.hisparse import HiSparse
from capdoctor.capture.scenarios.outcome import NotApplicable
from capdoctor.capture.scenarios.sparse_mla import SparseMLA

# As setuptools-scm and its kin write it.
_STATED = re.compile(r"""^(?:__version__\s*=\s*)?version\s*=\s*['"]([^'"\s]+)['"]""", re.MULTILINE)

Capturing = Callable[[Model, Forward, GraphMode], None]
Part = tuple[str, Model, Forward, tuple[GraphMode, ...]]


def sparse_mla_parts(source: Path, device: str) -> Iterator[Part]:
    """Give the index group, then the HiSparse runtime where the tree has one."""
    modes = (GraphMode.PIECEWISE, GraphMode.FULL)
    group = SparseMLA(source, device)
    yield "sparse MLA index group", group, group.forward_pass, modes
    try:
        hisparse = HiSparse(source, device)
    except NotApplicable:
        return
    yield "HiSparse runtime", hisparse, hisparse.forward_pass, modes


def fold_indptr_parts(source: Path, device: str) -> Iterator[Part]:
    """Give the function once for every shape."""
    import torch

    function = load_function(source, torch)
    for lengths, fold in SHAPES:
        name = f"{len(lengths)} sequences folded by {fold}"
        yield name, FoldIndptr(function, lengths, fold, device), Forward(), (GraphMode.FULL,)


SCENARIOS: dict[str, Callable[[Path, str], Iterator[Part]]] = {
    "sparse-mla": sparse_mla_parts,
    "fold-indptr": fold_indptr_parts,
}


def run(name: str, source: Path, device: AbstractContextManager[Any], log: EngineLog) -> None:
    """Go through the stages of a start-up; whatever breaks one is raised.

    Raises:
        NotApplicable: the tree lacks what the scenario exercises.
        CannotExercise: it has it in an unknown shape.
    """
    from capdoctor.capture.tracer.virtual import traced_if_asked

    _begin(name, source, log)
    with device as virtual, traced_if_asked(None if virtual is None else virtual.session):
        parts = list(SCENARIOS[name](source, "cuda"))
        log.record("Model loading took 0.00 GiB memory and 0.000000 seconds")
        for part in parts:
            drive.profile_run(part[1], part[2])
        _capture_all(parts, log, drive.profile_cudagraph_memory)
        log.record("Available KV cache memory: 1.00 GiB")
        log.record("GPU KV cache size: 1,024 tokens")
        _capture_all(parts, log, drive.capture_model)
    log.record("init engine (profile, create kv cache, warmup model) took 0.00 s")


def _begin(name: str, source: Path, log: EngineLog) -> None:
    config = f"scenario={name!r}, source={str(source)!r}"
    log.record(f"Initializing {_engine(source)} with config: {config}")
    log.record("world_size=1 rank=0 local_rank=0 distributed_init_method=none backend=none")
    log.record("Using V2 Model Runner")
    log.record("Loading model from scratch...")


def _engine(source: Path) -> str:
    """Name the engine as its log does; the version only where the tree itself states one."""
    for folder in (source, source / "vllm"):
        file = folder / "_version.py"
        if folder.name == "vllm" and file.is_file():
            found = _STATED.search(file.read_text(encoding="utf-8", errors="replace"))
            if found is not None:
                return f"a V1 LLM engine (v{found[1]})"
    return "an LLM engine"


def _capture_all(parts: list[Part], log: EngineLog, capture: Capturing) -> None:
    """Capture the parts, a bar for each mode; what breaks leaves its bar where it was."""
    for mode in (GraphMode.PIECEWISE, GraphMode.FULL):
        concerned = [part for part in parts if mode in part[3]]
        if concerned:
            _capture_mode(concerned, mode, log, capture)
    log.record("Graph capturing finished in 0 secs, took 0.00 GiB")


def _capture_mode(
    parts: list[Part],
    mode: GraphMode,
    log: EngineLog,
    capture: Capturing,
) -> None:
    bar = log.bar(f"Capturing CUDA graphs ({mode.name})", len(parts))
    try:
        for _, model, forward, _modes in parts:
            capture(model, forward, mode)
            bar.step()
    finally:
        bar.close()
