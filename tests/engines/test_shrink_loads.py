"""Smaller configs as the real engine's config classes read them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.layer_fields import rules
from capdoctor.engines.layers import depth_of
from capdoctor.engines.shrink import shrink

CONFIGS = Path(__file__).parents[1] / "data/configs"
LOADER = Path(__file__).with_name("load_configs.py")
READ_AT_LEAST = 48  # of those that the engine of the tests knows
# A list that the config class makes up by a period of its own, against the published pattern, by
# which the engine's model goes.
MADE_UP = {"mimo-v2-flash": {"layer_types"}}


def _language(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = next((config[key] for key in rules()["nested"] if config.get(key)), None)
    return config if depth_of(config) or inner is None else _language(inner)


def _is_of_numbers(key: str) -> bool:
    return key.endswith(("moe_layers", "_idxs", "_ids", "_indices", "_limit"))


def _derived(config: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Give the lists of names and flags with one entry a layer, ours or the class's own."""
    text = _language(config)
    depth = depth_of(text)
    lists = {key: value for key, value in text.items() if isinstance(value, list)}
    return {
        key: value
        for key, value in lists.items()
        if len(value) == depth and not _is_of_numbers(key) and "multipliers" not in key
    }


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, vllm_python: Path) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("configs")
    for path in CONFIGS.glob("*.json"):
        full = json.loads(path.read_text())
        for name, config in (("full", full), ("small", shrink(full).config)):
            folder = root / f"{path.stem}={name}"
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(dict(config)))
    command = [str(vllm_python), str(LOADER), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    found: dict[str, Any] = json.loads(done.stdout.rpartition("\n")[2])
    return found


@pytest.mark.engine
def test_the_engine_reads_every_smaller_config_that_it_reads_in_full(read: dict[str, Any]) -> None:
    names = [path.stem for path in CONFIGS.glob("*.json")]
    known = [name for name in names if "error" not in read[f"{name}=full"]]
    failed = {
        name: read[f"{name}=small"]["error"] for name in known if "error" in read[f"{name}=small"]
    }
    assert failed == {}
    assert len(known) >= READ_AT_LEAST


@pytest.mark.engine
def test_the_lists_that_the_engine_derives_have_every_kind_of_layer(read: dict[str, Any]) -> None:
    checked = 0
    for path in CONFIGS.glob("*.json"):
        full, small = read[f"{path.stem}=full"], read[f"{path.stem}=small"]
        if "error" in full:
            continue
        names = sorted(
            (_derived(full).keys() & _derived(small).keys()) - MADE_UP.get(path.stem, set())
        )
        checked += bool(names)
        before, after = (
            set(zip(*(map(repr, _derived(each)[name]) for name in names), strict=True))
            for each in (full, small)
        )
        assert after == before, path.stem
    assert checked >= 25
