"""What a user's arguments say about the model, as far as making it smaller must heed it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capdoctor.engines.layer_fields import is_count
from capdoctor.model import Json

_SHORT = {"tp": "tensor_parallel_size", "ep": "enable_expert_parallel", "sc": "speculative_config"}
_SHORT |= {"cc": "compilation_config"}
_TOLD = frozenset(
    {
        *_SHORT.values(),
        *("hf_overrides", "hf_config_path", "config_format", "max_model_len", "max_num_seqs"),
    }
)
_WHOLE = "compilation_config"  # replaces what keyword arguments say of it, whatever is in it
# Drafting methods that take what single layers of the model give, by the layers' numbers; without a
# method, vLLM finds out from the draft model which it is (config/speculative.py of 0.32).
_BY_NUMBER = frozenset({"eagle3", "dflash", "dspark", "extract_hidden_states", None})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the arguments say.

    ``drafts``: draft layers are used; ``by_number``: a draft model knows layers by their number;
    ``ranks``: among so many the experts are shared out.
    """

    overrides: Mapping[str, Any]
    drafts: bool
    by_number: bool
    ranks: int

    @classmethod
    def of(cls, given: Mapping[str, Json]) -> Asked:
        """Read the arguments of an engine."""
        ranks = given.get("tensor_parallel_size") if given.get("enable_expert_parallel") else 1
        overrides, drafts = given.get("hf_overrides"), given.get("speculative_config")
        return cls(
            overrides if isinstance(overrides, dict) else {},
            bool(drafts),
            _by_number(drafts),
            int(ranks) if isinstance(ranks, int) and is_count(ranks) else 1,
        )

    def inside(self, key: str) -> Asked:
        """Give what is said about a config inside the config."""
        inner = self.overrides.get(key)
        overrides = inner if isinstance(inner, dict) else {}
        return Asked(overrides, self.drafts, self.by_number, self.ranks)


def _by_number(drafts: Json) -> bool:
    if not drafts or not isinstance(drafts, dict):
        return bool(drafts)  # text that vLLM has yet to make sense of
    method = drafts.get("method")
    return method in _BY_NUMBER if isinstance(method, str) or method is None else True


def told(words: Sequence[str]) -> dict[str, Json]:
    """Give what command-line arguments for vLLM say about the model and its size.

    vLLM parses them, later and in full; here it is only known which of few are given, and their
    values where they are plain.
    """
    found: dict[str, Json] = {}
    for place, word in enumerate(words):
        head, equals, value = word.partition("=")
        name, _, part = head.lstrip("-").replace("-", "_").partition(".")
        name = _SHORT.get(name, name)
        if not head.startswith("-") or name not in _TOLD:
            continue
        after = words[place + 1 : place + 2]
        text = value if equals else next((w for w in after if not w.startswith("-")), "true")
        before = found.get(name)
        parts = before if isinstance(before, dict) else {}
        found[name] = {**parts, part: _value(text)} if part else _value(text)
    return {key: str(value) if key == _WHOLE else value for key, value in found.items()}


def _value(text: str) -> Json:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text
