"""What --reference may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.bisection.reference import read_reference
from capdoctor.errors import CannotDo

LOG = Path(__file__).parents[1] / "data/bisection/reference.log"


def test_a_log_of_the_crash() -> None:
    found = read_reference(LOG)
    assert found.signature is not None
    assert (found.function, found.hang) == ("_fold_seqlen_indptr", False)


def test_a_runs_folder_by_what_the_run_has_written(tmp_path: Path) -> None:
    diagnosis = {
        "class": "capture_host_sync",
        "fingerprint": "s1:a",
        "fingerprint_loose": "s1~:b",
        "error": {"message": "boom\nmore"},
        "root_frame": {"file": "vllm/a.py", "line": 1, "function": "f"},
    }
    (tmp_path / "outcome.json").write_text(
        json.dumps({"outcome": "crashed", "diagnosis": diagnosis})
    )
    found = read_reference(tmp_path)
    assert (found.signature, found.loose, found.function) == ("s1:a", "s1~:b", "f")
    assert (found.title, found.crash_class) == ("boom", "capture_host_sync")


def test_a_hung_run_is_a_reference_without_a_signature(tmp_path: Path) -> None:
    told = {"outcome": "hung", "diagnosis": {"class": "startup_hang"}}
    (tmp_path / "outcome.json").write_text(json.dumps(told))
    assert read_reference(tmp_path).hang


@pytest.mark.parametrize(
    "told", [{"outcome": "started", "diagnosis": None}, {"outcome": "started"}, []]
)
def test_a_run_that_did_not_crash_is_none(tmp_path: Path, told: object) -> None:
    (tmp_path / "outcome.json").write_text(json.dumps(told))
    with pytest.raises(CannotDo, match=r"shows no crash|is not the outcome"):
        read_reference(tmp_path)


def test_a_text_without_a_crash_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("all is well\n")
    with pytest.raises(CannotDo, match="shows no crash"):
        read_reference(tmp_path / "x.log")


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotDo):
        read_reference(tmp_path / "nowhere.log")


def test_a_crash_that_only_a_traced_run_can_show_is_no_reference(tmp_path: Path) -> None:
    told = {"outcome": "crashed", "diagnosis": {"class": "x", "fingerprint": "t1:a"}}
    (tmp_path / "outcome.json").write_text(json.dumps(told))
    with pytest.raises(CannotDo, match="shows no crash"):
        read_reference(tmp_path)
