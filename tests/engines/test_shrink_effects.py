"""What a smaller model may have made an engine choose otherwise."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from capdoctor.engines.shrink import shrink
from capdoctor.engines.shrink_effects import expected, settled

DATA = Path(__file__).parents[1] / "data"


def _expected(name: str, ranks: int = 1) -> tuple[str, ...]:
    config = json.loads((DATA / "configs" / f"{name}.json").read_text())
    return expected(config, shrink(config).config, ranks)


def test_fewer_layers_alone_change_no_choice() -> None:
    same, heads = _expected("llama-3.1-8b")
    assert same == "as in the full model: attention backend, graph mode"
    assert heads.startswith("heads per rank: 32 (tensor-parallel size 1)")


def test_fewer_experts_may_have_other_kernels() -> None:
    same, experts, heads = _expected("deepseek-v3.2", ranks=8)
    assert same == "as in the full model: attention backend, graph mode"
    assert experts.startswith("perhaps not as in the full model: kernels of the experts: unknown")
    assert "n_routed_experts" in experts
    assert heads.startswith("heads per rank: 16 (tensor-parallel size 8)")


def test_the_heads_are_those_of_the_language_model() -> None:
    assert "heads per rank: 64 " in _expected("kimi-k2.5")[-1]
    assert "heads per rank" not in str(_expected("llama-3.1-8b", ranks=5))


def test_a_width_that_changed_leaves_the_backend_unknown() -> None:
    full = {"num_attention_heads": 64, "head_dim": 128, "model_type": "llama"}
    said = expected(full, {**full, "head_dim": 64}, 1)
    assert said[0] == "as in the full model: graph mode"
    assert said[1].startswith("perhaps not as in the full model: attention backend: unknown")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "INFO [cuda.py:513] Using AttentionBackendEnum.FLASHMLA_SPARSE backend.",
            "attention backend: FLASHMLA_SPARSE",
        ),
        (
            "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].",
            "attention backend: FLASH_ATTN",
        ),
        ("Using Flash Attention backend on V1 engine.", "attention backend: Flash Attention"),
        (
            "Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']",
            "kernels of the experts: TRITON",
        ),
        (
            "CUDAGraphMode.FULL is not supported with X backend; setting cudagraph_mode=PIECEWISE",
            "graph mode: PIECEWISE",
        ),
        ("Breakable CUDA graph enabled (1 eager breaks)", "graph mode: Breakable CUDA graph"),
    ],
)
def test_the_log_tells_what_was_chosen(line: str, said: str) -> None:
    assert settled([line, line]) == (f"chosen by the engine: {said}",)


@pytest.mark.parametrize(
    "line",
    [
        "Using max model len 2048",
        "distributed_init_method=tcp://127.0.0.1 backend=gloo",
        "Using Ray backend requires installation of ray.",
        "non-default args: {'attention_backend': 'FLASHMLA'}",
        "Using FLASH_ATTN MLA prefill backend.",
    ],
)
def test_other_lines_tell_nothing(line: str) -> None:
    assert settled([line]) == ()


def test_a_log_of_a_real_engine_tells_all_three() -> None:
    with (DATA / "corpus/real-vllm030-h200-sparse-mla.log").open() as log:
        assert settled(log) == (
            "chosen by the engine: attention backend: FLASHMLA_SPARSE",
            "chosen by the engine: graph mode: FULL_AND_PIECEWISE, Breakable CUDA graph",
            "chosen by the engine: kernels of the experts: TRITON, TritonExperts",
        )


def test_endless_lines_take_no_time() -> None:
    begin = time.process_time()
    for text in ("Initializing a V1 LLM engine ", "CUDAGraphMode.X is not supported ", "Using A"):
        assert settled([text * (1_000_000 // len(text))]) == ()
    assert time.process_time() - begin < 1.0
