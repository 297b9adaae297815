from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import has_torch
from tests.helpers.command_line import answer, assert_refused, capdoctor

pytestmark = pytest.mark.skipif(not has_torch(), reason="the embedded engine needs torch")

LEGAL = "logits = hidden * 2\n        return logits"
ILLEGAL = "logits = hidden * float(hidden.sum())\n        return logits"
MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, hidden):
        BODY

def build():
    return Model()

def inputs(batch):
    return (torch.ones(batch, 4, device="cuda"),)
"""


@pytest.mark.parametrize(
    ("demo", "found"),
    [
        (
            "demo/sparse-mla",
            ("capture_event_outside_graph", "profile_cudagraph_memory", 1, "sparse-mla"),
        ),
        (
            "demo/fold-indptr",
            ("capture_unpinned_copy", "profile_cudagraph_memory", None, "fold-indptr"),
        ),
    ],
)
def test_a_flagship_demo_crashes_with_its_class_and_its_fix(
    demo: str, found: tuple[object, ...], tmp_path: Path
) -> None:
    done = capdoctor("repro", "--model", demo, "--json", "--out", tmp_path / "run")
    outcome = answer(done)
    diagnosis = outcome["diagnosis"]
    assert done.returncode == 1
    assert (outcome["schema"], outcome["outcome"]) == ("capdoctor.repro/1", "crashed")
    assert (
        diagnosis["class"],
        diagnosis["stage"],
        diagnosis["error"]["code"],
        diagnosis["fix"],
    ) == found
    assert diagnosis["root_frame"]["file"].startswith("demo/")
    assert outcome["stages"][-1]["end"] is None
    assert Path(outcome["artifacts"]["log"]).is_file()


def test_an_older_torch_answers_the_fold_with_code_900(tmp_path: Path) -> None:
    done = capdoctor(
        "repro", "--model", "demo/fold-indptr", "--as-torch", "2.10", "--json", "--out", tmp_path
    )
    assert answer(done)["diagnosis"]["error"]["code"] == 900


def test_the_clean_demo_starts(tmp_path: Path) -> None:
    done = capdoctor("repro", "--model", "demo/clean", "--json", "--out", tmp_path / "run")
    outcome = answer(done)
    assert (done.returncode, outcome["outcome"], outcome["diagnosis"]) == (0, "started", None)
    names = [stage["name"] for stage in outcome["stages"]]
    assert names.index("profile_cudagraph_memory") < names.index("capture")
    assert outcome["engine"] == {
        "kind": "embedded",
        "version": outcome["engine"]["version"],
        "python": None,
        "commit": None,
        "device": "virtual",
    }


def test_a_model_file_of_ones_own_crashes_until_it_is_made_legal(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MODEL.replace("BODY", ILLEGAL))
    crashed = capdoctor("repro", "--model", path, "--json", "--out", tmp_path / "a")
    found = answer(crashed)["diagnosis"]
    assert (crashed.returncode, found["class"]) == (1, "capture_host_sync")
    assert found["root_frame"]["line"] == 6
    path.write_text(MODEL.replace("BODY", LEGAL))
    assert capdoctor("repro", "--model", path, "--out", tmp_path / "b").returncode == 0


def test_a_model_file_is_taken_from_the_source_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODEL.replace("BODY", LEGAL))
    done = capdoctor("repro", "--model", "mine.py", "--source", tmp_path, "--out", tmp_path / "o")
    assert done.returncode == 0, done.stderr


def test_the_run_is_stopped_after_a_stage(tmp_path: Path) -> None:
    done = capdoctor(
        *("repro", "--model", "demo/clean", "--stop-after", "profile_cudagraph_memory"),
        *("--json", "--out", tmp_path),
    )
    assert (done.returncode, answer(done)["outcome"]) == (0, "stopped_after_stage")


def test_the_matrix_says_which_modes_hold(tmp_path: Path) -> None:
    done = capdoctor("repro", "--model", "demo/sparse-mla", "--matrix", "--json", "--out", tmp_path)
    rows = {row["mode"].lower(): row["outcome"] for row in answer(done)["matrix"]}
    assert rows["piecewise"] == "crashed"
    assert rows["eager"] in ("started", "stopped_after_stage")
    assert answer(done)["workarounds_verified"]


def test_repeats_are_reported_one_by_one(tmp_path: Path) -> None:
    done = capdoctor(
        "repro", "--model", "demo/host-sync", "--repeat", "2", "--json", "--out", tmp_path
    )
    prints = {run["fingerprint"] for run in answer(done)["runs"]}
    assert len(answer(done)["runs"]) == 2
    assert len(prints) == 1


def test_the_demos_are_listed() -> None:
    done = capdoctor("repro", "--list-demos", "--json")
    names = [demo["name"] for demo in json.loads(done.stdout)["demos"]]
    assert {"sparse-mla", "fold-indptr", "clean", "oom", "other-thread"} <= set(names)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["stray-word", "--model", "demo/clean"],
        ["stray-word", "--model", "lab/m", "--", "--max-model-len", "3"],
        ["--model", "demo/clean", "--engine", "vllm"],
        ["--model", "demo/clean", "--python", "/usr/bin/python3"],
        ["--model", "demo/clean", "--as-torch", "new"],
        ["--model", "demo/clean", "--stop-after", "nowhere"],
        ["--model", "demo/clean", "--engine-arg", "novalue"],
        ["--model", "demo/clean", "--repeat", "2", "--matrix"],
        ["--model", "demo/clean", "--", "--max-model-len", "3"],
        ["--model", "demo/no-such-demo"],
        ["--model", "demo/clean", "--source", "."],
        ["--model", "demo/clean", "--out", ""],
        ["--model", "demo/clean", "--engine-arg", "kv_cache_memory_bytes=-1"],
        ["--scenario", "sparse-mla", "--source", ".", "--matrix"],
        ["--scenario", "sparse-mla", "--source", ".", "--engine-arg", "seed=1"],
    ],
)
def test_a_command_line_that_cannot_be_meant_is_exit_2(
    arguments: list[str], tmp_path: Path
) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert_refused(capdoctor("repro", *arguments, env=state), 2)
    assert list((tmp_path / "state").glob("capdoctor/runs/*")) == []


def file_as_folder(folder: Path) -> list[str]:
    path = folder / "model"
    path.write_text("{}")
    return ["--model", str(path)]


def no_config(folder: Path) -> list[str]:
    return ["--model", str(folder)]


def no_python(folder: Path) -> list[str]:
    return ["--model", "org/name", "--python", str(folder / "no-python")]


def python_that_dies(folder: Path) -> list[str]:
    path = folder / "python"
    path.write_text("#!/bin/sh\nexit 7\n")
    path.chmod(0o755)
    return ["--model", "org/name", "--python", str(path)]


def python_without_vllm(_: Path) -> list[str]:
    return ["--model", "org/name", "--python", sys.executable]


def no_model_file(folder: Path) -> list[str]:
    return ["--model", str(folder / "none.py")]


def model_file_without_build(folder: Path) -> list[str]:
    path = folder / "m.py"
    path.write_text("x = 1\n")
    return ["--model", str(path)]


@pytest.mark.parametrize(
    "make",
    [
        file_as_folder,
        no_config,
        no_python,
        python_that_dies,
        python_without_vllm,
        no_model_file,
        model_file_without_build,
    ],
)
def test_what_cannot_be_started_is_told_apart_from_a_crash(make: object, tmp_path: Path) -> None:
    arguments = make(tmp_path)  # type: ignore[operator]
    done = capdoctor("repro", *arguments, "--json", "--out", tmp_path / "run")
    assert_refused(done, 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_130_and_nothing_is_left(
    number: signal.Signals, tmp_path: Path
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "capdoctor", "repro", "--model", "demo/clean", "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: "config" in (tmp_path / "engine.log").read_text(), child)
    family = psutil.Process(child.pid).children(recursive=True)
    os.kill(child.pid, number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, ""), err
    assert "capdoctor repro --model demo/clean" in err
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def wait_for(seen: object, child: subprocess.Popen[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and child.poll() is None:
        try:
            if seen():  # type: ignore[operator]
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not come that far")
