"""Command-line options of an engine, turned into an EngineSpec. Contradictions are refused here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from capdoctor.capture import scenarios
from capdoctor.errors import UsageError
from capdoctor.model import EngineSpec as EngineSpec  # noqa: PLC0414 - part of what this offers
from capdoctor.model import Json, Stage

Kind = Literal["vllm", "embedded"]
DEMO_PREFIX = "demo/"
SCENARIO_PREFIX = "scenario/"


def engine_kind(model: str, wanted: str | None) -> Kind:
    """Give the engine that the model asks for; ``wanted`` may only agree with it."""
    embedded = model.startswith((DEMO_PREFIX, SCENARIO_PREFIX)) or model.endswith(".py")
    if embedded and wanted == "vllm":
        raise UsageError(
            f"{model!r} runs on the embedded engine alone, --engine vllm contradicts it.",
            "Drop --engine, or give a folder with config.json or a hub id.",
        )
    if not embedded and wanted == "embedded":
        raise UsageError(
            f"The embedded engine runs demos and model files, and {model!r} is neither.",
            "Give demo/NAME (see --list-demos) or FILE.py, or drop --engine.",
        )
    return "embedded" if embedded else "vllm"


def engine_arguments(pairs: Sequence[str]) -> dict[str, Json]:
    """Turn ``KEY=VALUE`` into arguments; a value that is not JSON is taken as text."""
    arguments: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        name = key.strip().lstrip("-").replace("-", "_")
        if not equals or not name.isidentifier():
            raise UsageError(
                f"--engine-arg {pair!r} is not KEY=VALUE.",
                "For instance --engine-arg max_model_len=2048",
            )
        if name in arguments:
            raise UsageError(f"--engine-arg {name} was given twice.", "Give it once.")
        arguments[name] = _json_or_text(value)
    return arguments


def _json_or_text(value: str) -> Json:
    try:
        return json.loads(value)  # type: ignore[no-any-return]
    except ValueError:
        return value


def stage(name: str | None) -> Stage | None:
    """Give the stage of this name, refusing what cannot be stopped after."""
    if name is None:
        return None
    if name not in Stage.__members__.values() or name in (Stage.SERVING, Stage.SHUTDOWN):
        known = ", ".join(s.value for s in Stage if s not in (Stage.SERVING, Stage.SHUTDOWN))
        raise UsageError(f"--stop-after {name!r} is no stage of a start-up.", f"There are: {known}")
    return Stage(name)


def output_folder(text: str | None) -> Path | None:
    """Give the folder of ``--out``; an empty text would mean the current one by accident."""
    if text is not None and not text.strip():
        raise UsageError("--out is empty.", "Give a folder, or leave it out.")
    return Path(text) if text is not None else None


def check_consistent(spec: EngineSpec, *, repeat: int, matrix: bool) -> None:
    """Refuse options that contradict each other, before anything is started."""
    if spec.scenario is not None and (matrix or spec.engine_args):
        option = "--matrix" if matrix else "--engine-arg"
        raise UsageError(f"A scenario takes no {option}.", "Drop it: a scenario is one fixed run.")
    if repeat > 1 and matrix:
        raise UsageError("--repeat and --matrix contradict each other.", "Give one of the two.")
    if spec.kind == "embedded":
        _check_embedded(spec)
    else:
        _check_vllm(spec)


def _check_scenario(spec: EngineSpec) -> None:
    if spec.scenario not in scenarios.NAMES:
        known = ", ".join(scenarios.NAMES)
        raise UsageError(f"There is no scenario {spec.scenario!r}.", f"There are: {known}.")
    if spec.source is None:
        raise UsageError(
            "A scenario exercises real sources, and none were given.",
            "Name the tree with --source DIR (a checkout, site-packages, or an unpacked wheel).",
        )


def _check_embedded(spec: EngineSpec) -> None:
    if spec.scenario is not None:
        _check_scenario(spec)
    elif spec.source and spec.model.startswith(DEMO_PREFIX):
        raise UsageError(
            f"--source contradicts {spec.model}, whose source is part of capdoctor.",
            "Drop --source, or give --model FILE.py to take it from there.",
        )
    refused = {
        "--python": spec.python,
        "--tensor-parallel-size": spec.tensor_parallel_size,
        "--shrink": spec.shrink,
        "arguments after --": spec.extra_args,
    }
    for option, value in refused.items():
        if value:
            raise UsageError(
                f"The embedded engine takes no {option}.", "Drop it, or give a model for vLLM."
            )
    if spec.device == "cuda" and spec.as_torch:
        raise UsageError(
            "--as-torch is for the virtual device: --device cuda runs the torch that is installed.",
            "Drop one of the two.",
        )


def _check_vllm(spec: EngineSpec) -> None:
    if spec.as_torch or spec.device == "cuda":
        option = "--as-torch" if spec.as_torch else "--device"
        raise UsageError(
            f"{option} is for the embedded engine and for scenarios.",
            "vLLM runs on the device and torch of its own Python: choose it with --python.",
        )


def existing_folder(path: Path | None, option: str) -> Path | None:
    """Give the absolute folder, or refuse what is no folder."""
    if path is None:
        return None
    if not path.is_dir():
        raise UsageError(f"{option} {path} is not a folder.", "Give a checkout or a source tree.")
    return path.resolve()


def torch_release(text: str | None) -> str | None:
    """Give the ``X.Y`` of a torch release, refusing what is none."""
    if text is None:
        return None
    parts = text.split("+")[0].split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):  # noqa: PLR2004
        raise UsageError(f"--as-torch {text!r} is no release of torch.", "Give X.Y, such as 2.11.")
    return ".".join(parts[:2])
