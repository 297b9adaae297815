"""Versions that a repository pins."""

from __future__ import annotations

import pytest

from capdoctor.bisection.history.pins import is_pin_file, pins

TEXT = """
# a comment == 3
torch == 2.11.0
triton==3.6.0 ; platform_machine == "x86_64"
Ray[cgraph]>=2.40
flashinfer_python==0.6.1
aiter @ git+https://github.com/ROCm/aiter.git@v0.1.10.post3
    "setuptools==77.0.3",
"""


def test_exact_pins_of_a_requirements_file() -> None:
    assert pins(TEXT) == {
        "torch": "2.11.0",
        "triton": "3.6.0",
        "flashinfer-python": "0.6.1",
        "aiter": "v0.1.10.post3",
        "setuptools": "77.0.3",
    }


def test_build_arguments_of_a_dockerfile() -> None:
    assert pins('ARG AITER_BRANCH="v0.1.10.post3"\nARG BASE_IMAGE=rocm\n') == {
        "aiter": "v0.1.10.post3"
    }


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("requirements/cuda.txt", True),
        ("requirements.txt", True),
        ("requirements-test.in", True),
        ("docker/Dockerfile.rocm_base", True),
        ("pyproject.toml", True),
        ("uv.lock", True),
        ("vllm/requirements.py", False),
        ("docs/requirements.md", False),
        ("csrc/x.cu", False),
    ],
)
def test_files_that_pin(path: str, wanted: bool) -> None:
    assert is_pin_file(path) is wanted
