"""Logs that the formatters of real vLLM releases wrote (tests/data/logs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.logs import LinkKind, Run, read_log
from capdoctor.model import Stage

DATA = Path(__file__).resolve().parent.parent / "data" / "logs"
LOGS = sorted(DATA.glob("vllm-*.log"))
NO_RAW_PREFIX = ("0.32.0", "0.33.0")


def run_of(path: Path) -> Run:
    (run,) = read_log(path).runs
    return run


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_two_ranks_the_engine_and_the_front_end_are_told_apart(path: Path) -> None:
    run = run_of(path)
    first = [n for n in run.nodes if n.copy_of is None]
    assert [n.type for n in first] == ["torch.AcceleratorError"] * 4 + ["RuntimeError"] * 2
    assert [n.stream.rank for n in first[:4]] == [0, 0, 1, 1]
    assert [n.linked(LinkKind.CONTEXT) for n in first[:4]] == [None, 0, None, 4]
    assert first[4].message.startswith("Worker failed with error 'CUDA error: operation failed")
    assert first[5].message.startswith("Engine core initialization failed.")


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_the_note_repeats_the_whole_chain_and_the_raw_traceback_the_engine_error(
    path: Path,
) -> None:
    run = run_of(path)
    copies = {n.index: n.copy_of for n in run.nodes if n.copy_of is not None}
    assert copies == {2: 0, 3: 1, 6: 4, 7: 5, 9: 8}


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_frames_lead_to_the_innermost_one(path: Path) -> None:
    run = run_of(path)
    frame = run.nodes[0].frames[-1]
    assert (frame.path, frame.function) == ("vllm/model_executor/models/toy.py", "forward")
    assert run.nodes[1].frames[-1].path == "torch/cuda/graphs.py"


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_stage_bar_version_and_arguments_are_read(path: Path) -> None:
    run = run_of(path)
    assert run.stage_at(run.nodes[0].line, run.nodes[0].stream) is Stage.CAPTURE
    bar = run.bar_before(run.nodes[0].line)
    assert bar is not None
    assert (bar.done, bar.total) == (2, 30)
    version = path.stem.split("-")[1]
    assert {v.value for v in run.versions if v.package == "vllm"} == {version}
    args = next(a for a in run.args if a.source == "non_default_args")
    assert args.values["tensor_parallel_size"] == "2"


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_raw_tracebacks_have_a_process_where_the_release_prints_one(path: Path) -> None:
    run = run_of(path)
    raw = run.nodes[9]
    assert raw.process_name in {"EngineCore", "EngineCore_DP0", "EngineCore_0"}
    named = not any(v in path.stem for v in (*NO_RAW_PREFIX, "0.8.5"))
    assert raw.stream.named is named


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_the_call_site_of_the_failure_is_kept(path: Path) -> None:
    run = run_of(path)
    if "json" in path.stem:
        assert run.call_sites == ()
        return
    sites = {
        c.file.rsplit("/", 1)[-1]: c.lineno for c in run.call_sites if "failed to" in c.message
    }
    lines = {"0.8.5": 396, "0.10.2": 718, "0.17.1": 1100, "0.30.0": 1366, "0.32.0": 1510}
    version = path.stem.split("-")[1]
    assert sites == {"core.py": lines.get(version, 1584)}
