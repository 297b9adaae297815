"""A smaller model in the real CPU engine: the layers that stay are built and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.engines.start import run
from capdoctor.model import EngineSpec, Outcome, Stage

CONFIG = Path(__file__).parents[1] / "data/configs/gemma-3.json"
NARROW = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 512, "head_dim": 32}
SMALL = {"enforce_eager": True, "kv_cache_memory_bytes": 64 << 20}


@pytest.mark.engine
def test_the_smaller_model_runs_with_both_kinds_of_its_layers(
    tmp_path: Path, vllm_python: Path
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({**json.loads(CONFIG.read_text()), **NARROW}))
    answer = run(
        EngineSpec(
            "vllm",
            str(model),
            python=vllm_python,
            engine_args=SMALL,
            shrink=True,
            stop_after=Stage.PROFILE_RUN,
            timeout=240.0,
            out=tmp_path / "run",
        )
    )
    assert answer.outcome is Outcome.STOPPED_AFTER_STAGE, answer.reason
    assert "num_hidden_layers: 26 -> 2" in answer.changes
    spec = json.loads((tmp_path / "run/spec.json").read_text())
    read = json.loads((Path(spec["engine_args"]["hf_config_path"]) / "config.json").read_text())
    assert read["layer_types"] == ["sliding_attention", "full_attention"]
