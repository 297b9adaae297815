"""Arguments that a reproduction starts with unless the user says otherwise, for vLLM."""

from __future__ import annotations

from capdoctor.engines.models import Model
from capdoctor.model import Json

_MEDIA = {"image": 0, "video": 0, "audio": 0}


def vllm_defaults(model: Model) -> dict[str, Json]:
    """Give the arguments for made-up weights and a model folder that holds little but a config.

    Each is used only where the release knows it; what the user gives wins.
    """
    defaults: dict[str, Json] = {"load_format": "dummy", "generation_config": "vllm"}
    if not model.has_tokenizer:
        defaults["skip_tokenizer_init"] = True
    if not model.has_processor and _takes_media(model):
        defaults["limit_mm_per_prompt"] = dict(_MEDIA)
    return defaults


def _takes_media(model: Model) -> bool:
    config = model.config or {}
    return any(key in config for key in ("vision_config", "audio_config", "thinker_config"))
