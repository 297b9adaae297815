"""The stages of an engine's start-up."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """The stages of a start-up, in their order."""

    IMPORT = "import"
    CONFIG = "config"
    DEVICE_INIT = "device_init"
    WEIGHTS = "weights"
    PROFILE_RUN = "profile_run"
    PROFILE_CUDAGRAPH_MEMORY = "profile_cudagraph_memory"
    KV_CACHE = "kv_cache"
    WARMUP = "warmup"
    CAPTURE = "capture"
    SERVING = "serving"
    SHUTDOWN = "shutdown"


STAGE_ORDER: tuple[Stage, ...] = tuple(Stage)
