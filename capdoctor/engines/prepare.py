"""What has to be known and laid out before an engine can be started."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import capdoctor
from capdoctor.capture import scenarios
from capdoctor.engines.defaults import vllm_defaults
from capdoctor.engines.in_target import start_vllm
from capdoctor.engines.leanings import forget_bytecode, leanings
from capdoctor.engines.models import Model, find_model
from capdoctor.engines.overlay import OverlayInfo, build_overlay
from capdoctor.engines.pythons import TargetPython, find_python, git_commit
from capdoctor.engines.rundir import RunFolder, write_json
from capdoctor.engines.shrink import SMALLER
from capdoctor.engines.shrunk_model import shrunk_arguments
from capdoctor.errors import CannotDo
from capdoctor.model import EngineInfo, EngineSpec, Json


@dataclass(frozen=True, slots=True)
class Prepared:
    """An engine ready to be started, as often as one likes.

    ``model`` and ``target`` are None for the embedded engine; ``changes`` are sentences on what
    differs from what was asked for; ``variables`` go over those of the caller.
    """

    spec: EngineSpec
    info: EngineInfo
    target: TargetPython | None = None
    model: Model | None = None
    overlay: OverlayInfo | None = None
    engine_args: Mapping[str, Json] | None = None
    changes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def python_path(self) -> tuple[Path, ...]:
        """What goes first on PYTHONPATH: the overlay; for the embedded engine we ourselves."""
        if self.target is None:
            return (Path(capdoctor.__file__).parent.parent,)
        return (self.overlay.root,) if self.overlay else ()

    @property
    def title(self) -> str:
        """What is started, for people."""
        name = "embedded engine" if self.target is None else f"vLLM {self.info.version or ''}"
        return f"{name.strip()}, {self.spec.model}"

    @property
    def offline(self) -> bool:
        """Whether the engine needs nothing from a model hub."""
        return self.model is None or self.model.local


def prepare(spec: EngineSpec, root: Path) -> Prepared:
    """Look up Python, engine and model; lay out the overlay under ``root`` if one is asked for.

    Raises:
        CannotDo: one of them is not there or unusable.
    """
    _check_current_folder()
    if spec.kind == "embedded":
        _check_embedded(spec)
        device = "virtual" if spec.device == "cpu" else spec.device
        return Prepared(spec, EngineInfo("embedded", capdoctor.__version__, None, device=device))
    model = find_model(spec.model)  # first: to ask every Python on PATH takes seconds
    target = find_python(spec.python)
    if target.vllm is None:
        raise CannotDo(f"{target.executable} has no vllm installed", "choose one with --python")
    overlay = _overlay(spec, target, root)
    info = EngineInfo(
        kind="vllm",
        version=target.vllm.version,
        python=str(target.executable),
        commit=overlay.commit if overlay else target.vllm.commit,
    )
    arguments, changes = _arguments(spec, model, root)
    lean = leanings(spec, target, {**os.environ, **spec.environment})
    changes = (*changes, *lean.changes)
    return Prepared(spec, info, target, model, overlay, arguments, changes, lean.variables)


def forget(prepared: Prepared) -> None:
    """Remove what a start left in the user's cache for the sake of this overlay alone."""
    if prepared.overlay is not None:
        forget_bytecode(prepared.variables, prepared.overlay.root)


def _check_current_folder() -> None:
    """An engine inherits it; torch and vLLM die without a word where it was removed."""
    try:
        Path.cwd()
    except FileNotFoundError as exc:
        raise CannotDo("the current folder does not exist any more", "change to another") from exc


def _check_embedded(spec: EngineSpec) -> None:
    from capdoctor.engines import embedded

    embedded.check_torch()
    if spec.scenario is None:
        embedded.settings_for(spec)


def _overlay(spec: EngineSpec, target: TargetPython, root: Path) -> OverlayInfo | None:
    if spec.source is None or target.vllm is None:
        return None
    overlay = build_overlay(
        target.vllm.package,
        spec.source,
        root / "overlay",
        commit=git_commit(spec.source),
        installed_commit=target.vllm.commit,
        version=target.vllm.version,
    )
    write_json(root / "overlay.json", overlay.to_json())
    return overlay


def _arguments(
    spec: EngineSpec, model: Model, root: Path
) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Give the keyword arguments of the engine, and what shrinking changed."""
    arguments: dict[str, Json] = dict(spec.engine_args)
    if spec.tensor_parallel_size is not None:
        arguments["tensor_parallel_size"] = spec.tensor_parallel_size
    if not spec.shrink:
        return arguments, ()
    return shrunk_arguments(model, arguments, root, spec.extra_args)


def command_for(prepared: Prepared, folder: RunFolder) -> list[str]:
    """Give the command line of one run; for vLLM its spec file is written.

    Raises:
        CannotDo: the folder cannot be written, or the embedded engine refuses the spec.
    """
    spec = prepared.spec
    if prepared.target is None or prepared.model is None:
        from capdoctor.engines import embedded

        write_json(folder.spec, {"model": spec.model, "engine": "embedded"})
        if spec.scenario is not None and spec.source is not None:
            return scenarios.command(
                spec.scenario, spec.source, spec.device, spec.as_torch, folder.root
            )
        return [str(part) for part in embedded.command(spec, folder.root)]
    expected = prepared.overlay.root / "vllm" if prepared.overlay else None
    write_json(
        folder.spec,
        {
            "model": prepared.model.name,
            "defaults": {**vllm_defaults(prepared.model), **(SMALLER if spec.shrink else {})},
            "engine_args": dict(prepared.engine_args or {}),
            "argv": list(spec.extra_args),
            "graph_mode": spec.graph_mode,
            "expect_package": str(expected) if expected else None,
        },
    )
    runner = Path(start_vllm.__file__)
    files = [str(runner), str(folder.spec), str(folder.report)]
    return [str(prepared.target.executable), *files]


def repro_command(spec: EngineSpec, *more: str) -> str:
    """Give the line that runs this again by hand; ``more`` are options that no spec holds."""
    what = ["--scenario", spec.scenario] if spec.scenario else ["--model", spec.model]
    words = ["capdoctor", "repro", *what]
    words += _option("--python", spec.python) + _option("--source", spec.source)
    words += _option("-tp", spec.tensor_parallel_size) + _option("--as-torch", spec.as_torch)
    words += _option("--device", "cuda" if spec.device == "cuda" else None)
    words += [word for key, value in spec.engine_args.items() for word in _engine_arg(key, value)]
    words += ["--shrink"] if spec.shrink else []
    words += _option("--stop-after", spec.stop_after) + _option("--timeout", spec.timeout)
    words += _option("--hang-after", spec.hang_after if spec.hang_after != _HANG_AFTER else None)
    words += ["--trace"] if spec.trace else []
    words += [*_option("--out", spec.out), *more]
    words += ["--", *spec.extra_args] if spec.extra_args else []
    return shlex.join(words)


_HANG_AFTER = EngineSpec("vllm", "").hang_after


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [name, f"{value:g}" if isinstance(value, float) else str(value)]


def _engine_arg(key: str, value: Json) -> list[str]:
    return ["--engine-arg", f"{key}={json.dumps(value)}"]


def with_graph_mode(prepared: Prepared, mode: str) -> Prepared:
    """Give the same engine with another CUDA graph mode."""
    return replace(prepared, spec=replace(prepared.spec, graph_mode=mode))
