from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.model import EngineSpec

MODELS = Path(__file__).parents[1] / "data/models"
SMALL = {"enforce_eager": True, "max_model_len": 512, "kv_cache_memory_bytes": 64 << 20}


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache for all starts: what vLLM finds out about a model takes it eight seconds."""
    return tmp_path_factory.mktemp("vllm-cache")


@pytest.fixture
def spec(
    tmp_path: Path, vllm_python: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> EngineSpec:
    """Give the smallest start of the real CPU engine."""
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(shared_cache))
    return EngineSpec(
        "vllm",
        str(MODELS / "llama_tiny"),
        python=vllm_python,
        engine_args=SMALL,
        out=tmp_path / "out",
        timeout=200.0,
    )
