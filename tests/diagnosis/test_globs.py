"""Globs over frames know one sign, the star, and fit the whole text."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.diagnosis.globs import frame_fits, glob_fits

few = st.text("ab/.", max_size=8)


@given(few, st.lists(few, min_size=1, max_size=4))
def test_stars_mean_what_they_mean_to_a_shell(text: str, parts: list[str]) -> None:
    glob = "*".join(parts) + ":x"
    assert glob_fits(text + ":x", glob) == fnmatch.fnmatchcase(text + ":x", glob)


@pytest.mark.parametrize(
    ("path", "function", "glob", "fits"),
    [
        ("torch/_ops.py", "__call__", "torch/_ops.py", True),
        ("torch/nn/modules/linear.py", "forward", "torch/nn/modules/*", True),
        ("mytorch/_ops.py", "__call__", "torch/_ops.py", False),
        ("vllm/v1/worker/gpu_worker.py", "load_model", "*:load_model", True),
        ("vllm/v1/worker/gpu_worker.py", "unload_model", "*:load_model", False),
        ("vllm/v1/executor/abstract.py", "initialize_from_config", "*/worker/*:init*", False),
        ("a.py", None, "a.py", True),
    ],
)
def test_paths_and_functions(path: str, function: str | None, glob: str, fits: bool) -> None:
    assert frame_fits(path, function, (glob,)) is fits
