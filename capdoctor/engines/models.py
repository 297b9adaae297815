"""What ``--model`` names for a real engine: a folder with a config, or a hub id."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capdoctor.errors import CannotDo

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z")
_CONFIG_HINT = "give a folder that holds a model's config.json (weights are not needed)"
_MISTRAL = "params.json"  # a config in Mistral's own format
_MISTRAL_WEIGHTS = "consolidated*.safetensors"
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "tekken.json")


@dataclass(frozen=True, slots=True)
class Model:
    """A model to start: ``name`` is what the engine is given.

    ``config`` is its config.json, None for a hub id that is not in the local cache and for a model
    that has a params.json alone; ``folder`` is where they lie.
    """

    name: str
    local: bool
    config: dict[str, Any] | None
    has_tokenizer: bool
    has_processor: bool
    folder: Path | None = None

    def in_mistral_format(self, config_format: object = None) -> bool:
        """Say whether vLLM reads params.json, under this ``config_format`` or by its own choice."""
        if self.folder is None or not (self.folder / _MISTRAL).exists():
            return config_format == "mistral"
        if config_format in (None, "auto"):
            return self.config is None or any(self.folder.glob(_MISTRAL_WEIGHTS))
        return config_format == "mistral"


def find_model(name: str) -> Model:
    """Look a model up.

    Raises:
        CannotDo: a path that is not there, that is a file, or that has no readable config.json.
    """
    folder = _expanded(name)
    if folder.is_dir():
        return _local(folder)
    if folder.exists():
        raise CannotDo(f"the model {name} is a file, not a folder", _CONFIG_HINT)
    if name.startswith((".", "/", "~")) or not _HUB_ID.match(name):
        raise CannotDo(f"there is no model folder {name}", _CONFIG_HINT)
    cached = _cached(name)
    config = _read_config(cached / "config.json") if cached else None
    return Model(
        name, local=False, config=config, has_tokenizer=True, has_processor=True, folder=cached
    )


def _expanded(path: str) -> Path:
    """Give the path with ``~`` opened, as it stands where nobody knows a home of this user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib's raises


def _local(folder: Path) -> Model:
    config = folder / "config.json"
    if not config.is_file() and not (folder / _MISTRAL).is_file():
        raise CannotDo(f"the model folder {folder} has no config.json", _CONFIG_HINT)
    return Model(
        name=str(folder.absolute()),
        local=True,
        config=_read_config(config) if config.is_file() else None,
        has_tokenizer=any((folder / file).exists() for file in _TOKENIZERS),
        has_processor=any(folder.glob("*processor_config.json")),
        folder=folder.absolute(),
    )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise CannotDo(f"{path} cannot be read: {exc}", "is it complete, valid JSON?") from exc
    if not isinstance(config, dict):
        raise CannotDo(f"{path} holds no JSON object", "is it a model's config.json?")
    return config


def _cached(name: str) -> Path | None:
    """Return the newest snapshot of a hub model in the local cache that has a config."""
    home = _expanded(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    snapshots = cache / ("models--" + name.replace("/", "--")) / "snapshots"
    configs = sorted(snapshots.glob("*/config.json"), key=lambda path: path.stat().st_mtime)
    return configs[-1].parent if configs else None
