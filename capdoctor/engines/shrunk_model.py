"""A folder with a model's config cut down, for an engine to read in place of the model's own.

The engine reads a whole config and works out from it what its config class derives (lists of kinds,
say). Single values put over a config that is read already would come too late for those, and some
of them cannot be put there at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from capdoctor.engines.asked import told
from capdoctor.engines.models import Model, find_model
from capdoctor.engines.nested import merged
from capdoctor.engines.rundir import write_text, writing
from capdoctor.engines.shrink import Shrunk, shrink
from capdoctor.engines.shrink_effects import expected
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import Json

FOLDER = "shrunk"
_CONFIG = "config.json"
_QUANTIZATION = "hf_quant_config.json"  # of checkpoints by ModelOpt before 0.31
_WITH_CONFIG = ("*.py", "generation_config.json", "*processor_config.json", _QUANTIZATION)


def shrunk_arguments(
    model: Model, arguments: Mapping[str, Json], root: Path, words: Sequence[str] = ()
) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Write the smaller config under ``root``; give the engine's arguments and what changed.

    ``words`` are arguments that the engine itself is to parse; they win over those given here.

    Raises:
        UsageError: ``words`` put another config over the smaller one.
        CannotDo: the model's config is not on this machine, or ``root`` cannot be written.
    """
    said = told(words)
    _check_whole(said)
    given = {**arguments, **said}
    path = arguments.get("hf_config_path")
    source = find_model(path) if isinstance(path, str) else model
    if source.in_mistral_format(given.get("config_format")):
        raise CannotDo(
            f"the engine reads {source.name} from params.json, and only a config.json can be cut",
            "--no-shrink, or --engine-arg config_format=hf where it has a config.json too",
        )
    if source.config is None:
        raise CannotDo(
            f"the config of {source.name} is not on this machine, so it cannot be shrunk",
            "give a folder with its config.json, or --no-shrink",
        )
    small = _cut(source, source.config, given)
    whole = small.arguments(arguments)
    if not small.overrides:
        return whole, small.changes
    folder = root / FOLDER
    _write(folder, small, source.folder)
    ranks = given.get("tensor_parallel_size")
    asked = arguments.get("hf_overrides")
    full = merged(source.config, asked) if isinstance(asked, dict) else source.config
    effects = expected(full, small.config, ranks if isinstance(ranks, int) and ranks > 0 else 1)
    return {**whole, "hf_config_path": str(folder)}, (*small.changes, *effects)


def _cut(source: Model, config: Mapping[str, Any], given: Mapping[str, Json]) -> Shrunk:
    try:
        return shrink(config, given, _own_quantization(source))
    except RecursionError as exc:
        raise CannotDo(f"{source.name} has a config nested too deeply", "--no-shrink") from exc


def _check_whole(said: Mapping[str, Json]) -> None:
    """Refuse a config behind ``--``: vLLM would read it in place of ours, or put it over ours."""
    for name in ("hf_overrides", "hf_config_path"):
        if name in said:
            option = name.replace("_", "-")
            raise UsageError(
                f"--shrink cuts the model's config, and --{option} after -- would undo it.",
                f"Give it as --engine-arg {name}=VALUE, or --no-shrink.",
            )


def _own_quantization(model: Model) -> dict[str, Any] | None:
    if model.folder is None:
        return None
    try:
        found = json.loads((model.folder / _QUANTIZATION).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _write(folder: Path, small: Shrunk, source: Path | None) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in _WITH_CONFIG if source else ():
            for path in sorted(source.glob(pattern) if source else ()):
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(path.resolve())
    write_text(folder / _CONFIG, json.dumps(dict(small.config), indent=2) + "\n")
    if small.quantization is not None:
        write_text(folder / _QUANTIZATION, json.dumps(dict(small.quantization), indent=2) + "\n")
