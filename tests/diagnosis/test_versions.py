"""Versions that a log prints, and those that it betrays."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.diagnosis.tables import table
from capdoctor.logs import read_text
from capdoctor.model import VersionClaim

ROWS = table("call_sites")["rows"]


def versions_of(text: str) -> dict[str, VersionClaim]:
    return dict(diagnose_parsed(read_text(text), store.load(), None).versions)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_core_call_site_gives_the_release_away(row: list[object]) -> None:
    release, core, hit, _ = row
    claim = versions_of(
        f"(Worker_TP0 pid=1) ERROR 08-12 10:00:01 [multiproc_executor.py:{hit}] WorkerProc hit an"
        " exception.\n"
        f"(EngineCore pid=2) ERROR 08-12 10:00:01 [core.py:{core}] EngineCore failed to start.\n"
    )["vllm"]
    assert str(release) in claim.value
    assert claim.value.startswith("≈")
    assert claim.source.startswith("inferred: ")


def test_fatal_error_stands_two_lines_below() -> None:
    text = "(EngineCore pid=2) ERROR 08-12 10:00:01 [core.py:1376] EngineCore encountered a fatal"
    assert versions_of(text + " error.\n")["vllm"].value == "≈0.29.0"


def test_read_version_is_preferred_and_pins_torch() -> None:
    found = versions_of(
        "INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.17.1) with config: x\n"
        "(EngineCore pid=2) ERROR 08-12 10:00:01 [core.py:1374] EngineCore failed to start.\n"
    )
    assert found["vllm"].value == "0.17.1"
    assert found["vllm"].source.startswith("read: ")
    assert found["torch"].value == "2.10.0"
    assert found["torch"].source.startswith("inferred: ")


@pytest.mark.parametrize(("line", "torch"), [(2630, "2.9.1"), (3332, "2.13.0"), (2225, "2.6.0")])
def test_allocator_assert_gives_torch_away(line: int, torch: str) -> None:
    found = versions_of(
        "RuntimeError: it->second->use_count > 0 INTERNAL ASSERT FAILED at"
        f' "/pytorch/c10/cuda/CUDACachingAllocator.cpp":{line}, please report a bug to PyTorch.\n'
    )
    assert found["torch"].value == torch
    assert found["torch"].source.startswith("inferred: ")


def test_nothing_is_claimed_without_a_sign() -> None:
    assert versions_of("RuntimeError: CUDA error: invalid argument\n") == {}
