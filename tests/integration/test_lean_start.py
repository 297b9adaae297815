"""A real engine started lean: what vLLM finds out about a model is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.engines.in_target.fork_inspection import FORK_SWITCH, FORKED
from capdoctor.engines.in_target.start_vllm import GC_SWITCH, RESTED
from capdoctor.engines.start import run
from capdoctor.model import EngineSpec, Outcome, Stage

pytestmark = pytest.mark.engine
MODEL = Path(__file__).parents[1] / "data/models/llama_tiny"


def test_a_lean_start_finds_out_about_a_model_what_a_plain_one_does(
    tmp_path: Path, vllm_python: Path
) -> None:
    found = {}
    for switch, collects in (("1", "0"), ("0", "1")):
        spec = EngineSpec(
            "vllm",
            str(MODEL),
            python=vllm_python,
            engine_args={"enforce_eager": True, "max_model_len": 512},
            stop_after=Stage.CONFIG,
            timeout=300.0,
            out=tmp_path / f"out-{switch}",
            environment={
                FORK_SWITCH: switch,
                GC_SWITCH: collects,
                "VLLM_CACHE_ROOT": str(tmp_path / switch),
            },
        )
        answer = run(spec)
        assert answer.outcome is Outcome.STOPPED_AFTER_STAGE, answer.reason
        assert (FORKED in answer.changes, RESTED in answer.changes) == (switch == "1",) * 2
        (file,) = (tmp_path / switch / "modelinfos").glob("*.json")
        found[switch] = json.loads(file.read_text())
    assert found["1"] == found["0"]
    assert found["1"]["modelinfo"]["architecture"] == "LlamaForCausalLM"
