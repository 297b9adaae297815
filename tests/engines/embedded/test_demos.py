"""Every demo crashes as its title says, and starts once its code is made legal."""

from __future__ import annotations

import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from capdoctor.engines.embedded import list_demos
from tests.engines.embedded.start import demo_settings, edited, start

PINNED = "Cannot copy between CPU and CUDA tensors during CUDA graph capture"
UNSUPPORTED = "CUDA error: operation not permitted when stream is capturing"


@dataclass(frozen=True)
class Crash:
    """The first error of the chain, and the function that raised it."""

    error: str
    code: int | None
    message: str
    function: str


CRASHES = {
    "sparse-mla": Crash("AcceleratorError", 1, "CUDA error: invalid argument", "_convert_once"),
    "fold-indptr": Crash("RuntimeError", None, PINNED, "_fold_seqlen_indptr"),
    "host-sync": Crash("AcceleratorError", 900, UNSUPPORTED, "_choose_num_splits"),
    "unjoined-stream": Crash(
        "AcceleratorError", 904, "CUDA error: capturing stream has unjoined work", "_end_segment"
    ),
    "uncaptured-dependency": Crash(
        "AcceleratorError", 905, "CUDA error: dependency created on unc", "wait_until_uploaded"
    ),
    "other-thread": Crash("AcceleratorError", 900, UNSUPPORTED, "_upload"),
    "rng-state": Crash(
        "RuntimeError", None, "RNG op during graph capture but generator is not", "forward"
    ),
    "default-stream": Crash(
        "RuntimeError", None, "CUDA graphs must be captured on a non-default stream", "_capture"
    ),
    "oom": Crash("OutOfMemoryError", None, "CUDA out of memory. Tried to allocate", "_workspace"),
    "metadata-error": Crash("KeyError", None, "4", "_build_decode_metadata"),
}
OUTSIDE_CAPTURE = {"default-stream"}  # breaks in the eager run that comes first


def _legal_edits(name: str) -> tuple[tuple[str, str], ...]:
    text = (Path(__file__).parent / "legal_twins.toml").read_text("utf-8")
    rows = tomllib.loads(text)["edit"]
    return tuple((row["old"], row["new"]) for row in rows if row["demo"] == name)


def _first(error: BaseException) -> BaseException:
    while error.__context__ is not None:
        error = error.__context__
    return error


def test_every_demo_but_the_clean_one_is_here() -> None:
    assert {demo.name for demo in list_demos()} == {*CRASHES, "clean"}


@pytest.mark.parametrize("name", CRASHES)
def test_a_demo_breaks_as_its_title_says(name: str) -> None:
    crash = CRASHES[name]
    error, log = start(demo_settings(name, "2.13"))
    assert error is not None
    first = _first(error)
    frames = traceback.extract_tb(first.__traceback__)
    assert type(first).__name__ == crash.error
    assert getattr(first, "error_code", None) == crash.code
    assert str(first).removeprefix("'").startswith(crash.message)
    assert frames[-1].name == crash.function
    assert ("Capturing CUDA graphs (PIECEWISE)" in log) is (name not in OUTSIDE_CAPTURE)
    assert "Available KV cache memory" not in log


@pytest.mark.parametrize("name", CRASHES)
def test_the_same_code_made_legal_starts(name: str, tmp_path: Path) -> None:
    settings = edited(demo_settings(name, "2.13"), tmp_path, _legal_edits(name))
    error, log = start(settings)
    assert error is None
    assert log.count("Graph capturing finished in") == 2
    assert "init engine (profile, create kv cache, warmup model) took" in log


def test_the_clean_demo_starts_in_every_mode() -> None:
    for mode in ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"):
        error, log = start(demo_settings("clean", cudagraph_mode=mode))
        assert error is None, mode
        assert ("Capturing CUDA graphs (PIECEWISE)" in log) is ("PIECEWISE" in mode)
        assert ("Capturing CUDA graphs (FULL)" in log) is ("FULL" in mode)


def test_full_graphs_are_a_workaround_for_events_across_segments() -> None:
    for name in ("sparse-mla", "unjoined-stream"):
        assert start(demo_settings(name, cudagraph_mode="FULL"))[0] is None, name
        assert start(demo_settings(name, cudagraph_mode="PIECEWISE"))[0] is not None, name


@pytest.mark.parametrize("name", sorted(set(CRASHES) - OUTSIDE_CAPTURE))
def test_eager_mode_hides_every_capture_bug(name: str) -> None:
    expected = KeyError if name == "metadata-error" else None
    error, _log = start(demo_settings(name, enforce_eager=True))
    assert (error and type(error)) is expected


def test_older_torch_breaks_the_fold_demo_in_the_driver() -> None:
    error, _log = start(demo_settings("fold-indptr", "2.10"))
    assert error is not None
    first = _first(error)
    assert getattr(first, "error_code", None) == 900
    assert "previous error during capture" in str(error)  # what a careless log shows last


def test_before_2_8_driver_errors_are_plain_runtime_errors() -> None:
    error, _log = start(demo_settings("sparse-mla", "2.7"))
    assert type(error) is RuntimeError
    assert str(error).startswith("CUDA error: invalid argument\nCUDA kernel errors might be")


def test_a_run_leaves_torch_as_it_was() -> None:
    import torch

    before = (torch.cuda.Stream, torch.Generator, torch.cuda.graph.default_capture_stream)
    start(demo_settings("sparse-mla"))
    start(demo_settings("clean"))
    assert before == (torch.cuda.Stream, torch.Generator, torch.cuda.graph.default_capture_stream)
    assert not torch.zeros(2).is_cuda
