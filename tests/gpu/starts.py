"""How the visits start engines: the smallest settings that show the flagship crash."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

ENGINE_ARGS = {
    "max_model_len": 2048,
    "max_num_seqs": 8,
    "gpu_memory_utilization": 0.35,
    "compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8]},
}
# The backend that converts through the index group; Hopper's default one never does.
SPARSE_ARGS = {**ENGINE_ARGS, "attention_config": {"backend": "FLASHMLA_SPARSE"}}
ENGINE_ENV = {"VLLM_USE_BREAKABLE_CUDAGRAPH": "1", "VLLM_USE_FLASHINFER_SAMPLER": "0"}
GPU_QUERY = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
STOP = ("--stop-after", "profile_cudagraph_memory")


def engine_options(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Give engine arguments as options of capdoctor."""
    for key, value in arguments.items():
        yield from ("--engine-arg", f"{key}={json.dumps(value)}")


def gpus() -> str:
    """Give name and driver of each GPU, a line each."""
    done = subprocess.run(GPU_QUERY, capture_output=True, text=True, check=False, timeout=90)
    return done.stdout.strip()
