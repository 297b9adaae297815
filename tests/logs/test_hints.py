"""Versions, arguments and asserts that lines give away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.logs import read_text
from capdoctor.logs.hints import split_values

VERSIONS = [
    ("INFO 01-01 00:00:00 [a.py:1] vLLM API server version 0.11.1rc6.dev83+gc3ee80a01", "vllm",
     "0.11.1rc6.dev83+gc3ee80a01"),
    ("INFO 01-01 00:00:00 [u.py:1]   ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.29.0", "vllm", "0.29.0"),
    ("INFO 01-01 00:00:00 [u.py:1] vLLM server version 0.33.0, serving model m", "vllm", "0.33.0"),
    ("INFO 01-01 00:00:00 [c.py:1] Initializing a V1 LLM engine (v0.30.0) with config: m=1", "vllm",
     "0.30.0"),
    ("PyTorch version: 2.8.0+cu128", "torch", "2.8.0+cu128"),
    ("[pip3] torch==2.9.1", "torch", "2.9.1"),
    ("torch                             2.7.1+cu128", "torch", "2.7.1+cu128"),
    ("INFO 01-01 00:00:00 [p.py:1] vLLM is using nccl==2.27.3", "nccl", "2.27.3"),
    ("| NVIDIA-SMI 570.86   Driver Version: 570.86.10  CUDA |", "driver", "570.86.10"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "package", "value"), VERSIONS)
def test_versions(line: str, package: str, value: str) -> None:
    (run,) = read_text(line).runs
    assert (package, value) in {(v.package, v.value) for v in run.versions}


def test_words_about_versions_are_none() -> None:
    (run,) = read_text(
        "INFO 01-01 00:00:00 [a.py:1] this version of torch is new\ntorch is slow\n"
    ).runs
    assert run.versions == ()


def test_allocator_assert_names_expression_file_and_line() -> None:
    (run,) = read_text(
        "RuntimeError: it->second->use_count > 0 INTERNAL ASSERT FAILED at "
        '"/pytorch/c10/cuda/CUDACachingAllocator.cpp":2630, please report a bug to PyTorch.'
    ).runs
    (found,) = run.asserts
    assert (found.expression, found.lineno) == ("it->second->use_count > 0", 2630)


def test_arguments_keep_nested_values_whole() -> None:
    (run,) = read_text(
        "INFO 01-01 00:00:00 [u.py:1] non-default args: {'model': 'a, b', 'port': 1, "
        "'compilation_config': {'mode': <Mode.NONE: 0>, 'sizes': [1, 2]}, 'x': None}"
    ).runs
    (args,) = run.args
    assert dict(args.values) == {
        "model": "'a, b'", "port": "1", "x": "None",
        "compilation_config": "{'mode': <Mode.NONE: 0>, 'sizes': [1, 2]}",
    }  # fmt: skip


VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.none(), st.text("ab,'\\\"{}()=: ", max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner, inner)),
    max_leaves=6,
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=5))
def test_any_dictionary_that_python_prints_is_split(values: dict[str, object]) -> None:
    assert split_values(repr(values)[1:]) == {k: repr(v).strip() for k, v in values.items()}


@given(st.text(max_size=60))
def test_splitting_never_hangs_or_fails(text: str) -> None:
    assert isinstance(split_values(text), dict)
