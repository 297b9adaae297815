"""What a user's arguments say about the model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.asked import Asked, told


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {}),
        (["--max-model-len", "64"], {"max_model_len": 64}),
        (["--max_model_len=64"], {"max_model_len": 64}),
        (["--max-model-len", "4k"], {"max_model_len": "4k"}),
        (["-tp", "2", "-ep"], {"tensor_parallel_size": 2, "enable_expert_parallel": True}),
        (["-ep", "--seed", "1"], {"enable_expert_parallel": True}),
        (
            ["--speculative-config", '{"method": "mtp"}'],
            {"speculative_config": {"method": "mtp"}},
        ),
        (
            ["-sc.method=mtp", "--speculative-config.num_speculative_tokens", "2"],
            {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
        ),
        (["--hf-overrides.a.b", "1"], {"hf_overrides": {"a.b": 1}}),
        (["-cc", '{"mode": 0}'], {"compilation_config": "{'mode': 0}"}),
        (["-cc.mode=0"], {"compilation_config": "{'mode': 0}"}),
    ],
)
def test_what_words_for_vllm_say_of_the_model_is_known(
    words: list[str], found: dict[str, Any]
) -> None:
    assert told(words) == found


@pytest.mark.parametrize(
    "words",
    [
        ["--port", "80"],
        ["tp", "2"],
        ["--no-enable-expert-parallel"],
        ["--served-model-name", "speculative_config"],
        ["--speculative-config-path", "x"],
    ],
)
def test_other_words_say_nothing_of_it(words: list[str]) -> None:
    assert told(words) == {}


@given(
    st.lists(st.text() | st.sampled_from(["-sc", "-sc.", "-tp=", "--hf-overrides", "-cc.x", "-"]))
)
def test_any_words_are_read(words: list[str]) -> None:
    told(words)


@pytest.mark.parametrize(
    ("drafts", "by_number"),
    [
        (None, False),
        ({}, False),
        ({"method": "ngram"}, False),
        ({"method": "mtp"}, False),
        ({"method": "deepseek_mtp"}, False),
        ({"method": "eagle", "model": "lab/draft"}, False),
        ({"method": "eagle3", "model": "lab/draft"}, True),
        ({"method": "extract_hidden_states"}, True),
        ({"model": "lab/draft"}, True),  # vLLM looks into it to know
        ({"method": ["mtp"]}, True),
        ("@draft.json", True),
    ],
)
def test_a_draft_model_that_reads_single_layers_is_told(drafts: Any, by_number: bool) -> None:
    asked = Asked.of({"speculative_config": drafts})
    assert asked.by_number is by_number
    assert asked.drafts is bool(drafts)


@pytest.mark.parametrize("size", [0, -2, "2", None, True, 2.0])
def test_a_number_of_ranks_that_is_none_is_one(size: Any) -> None:
    given: dict[str, Any] = {"enable_expert_parallel": True, "tensor_parallel_size": size}
    assert Asked.of(given).ranks == 1
