"""The engine probe: what a run's outcome says, and the proof that it ran what was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.probes.engine import EngineProbe, model_in_repository, observe
from capdoctor.bisection.probes.probe import Cancelled, Place
from capdoctor.bisection.probes.strays import MARK
from capdoctor.engines.listener import RunListener
from capdoctor.errors import CannotDo
from capdoctor.model import (
    Diagnosis,
    EngineInfo,
    EngineSpec,
    ErrorInfo,
    Frame,
    GpuMemory,
    GpuMemoryFacts,
    Outcome,
    ProcessRef,
    RunOutcome,
    Stage,
    Verdict,
)
from tests.helpers.git_repo import Commit, build_repository

DIAGNOSIS = Diagnosis(
    verdict=Verdict.STARTUP_CRASH,
    crash_class="capture_host_sync",
    stage=Stage.CAPTURE,
    component="vllm",
    error=ErrorInfo("RuntimeError", "CUDA error\nmore", sticky=True),
    root_frame=Frame("vllm/a.py", 3, "f"),
    raised_at=None,
    process=ProcessRef(),
    confidence="confirmed",
    fingerprint="s1:a",
    fingerprint_loose="s1~:a",
)


def _outcome(outcome: Outcome, commit: str | None, **more: object) -> RunOutcome:
    info = EngineInfo("vllm", "0.32.0+cpu", "/py", commit)
    return RunOutcome(outcome, "because", info, ("vllm",), 3.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "saw"),
    [
        (Outcome.STARTED, Saw.CLEAN),
        (Outcome.STOPPED_AFTER_STAGE, Saw.CLEAN),
        (Outcome.CRASHED, Saw.CRASH),
        (Outcome.HUNG, Saw.HANG),
        (Outcome.SETUP_FAILED, Saw.UNBUILDABLE),
        (Outcome.INTERRUPTED, Saw.INFRA),
    ],
)
def test_outcomes(outcome: Outcome, saw: Saw) -> None:
    assert observe(_outcome(outcome, None), "worktree", 0.5).saw is saw


def test_a_crash_brings_its_diagnosis_along() -> None:
    seen = observe(_outcome(Outcome.CRASHED, None, diagnosis=DIAGNOSIS), "worktree", 0.5)
    assert (seen.signature, seen.loose, seen.stage) == ("s1:a", "s1~:a", "capture")
    assert seen.title == "RuntimeError: CUDA error in f"
    assert seen.sticky
    assert (seen.seconds, seen.setup_seconds, seen.starts) == (3.0, 0.5, 1)


PYTHON = {"vllm/__init__.py": "0"}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Mirror, tuple[str, ...]]:
    commits = [
        Commit({**PYTHON, "csrc/a.cu": "0", "csrc/cpu/c.cpp": "0"}),
        Commit({"vllm/__init__.py": "1"}),
        Commit({"csrc/a.cu": "1"}),
        Commit({"csrc/a.cu": "0", "csrc/cpu/c.cpp": "1"}),
    ]
    shas = build_repository(tmp_path / "repo", commits, tags={"v0.32.0": 0})
    return open_mirror(tmp_path / "repo", tmp_path / "m"), shas


def _place(made: tuple[Mirror, tuple[str, ...]], at: int, tmp_path: Path) -> Place:
    return Place(made[1][at], made[0], tmp_path / "trees", tmp_path / "out")


def _probe(made: tuple[Mirror, tuple[str, ...]], commit: str | None = None) -> EngineProbe:
    def run(spec: EngineSpec, _: RunListener) -> RunOutcome:
        assert spec.source is not None
        number = (spec.source / "vllm/__init__.py").read_text()
        return _outcome(Outcome.STARTED, commit or made[1][int(number)])

    return EngineProbe(EngineSpec("vllm", "m"), made[1][0], run)


def test_python_over_equal_binaries_runs(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    seen = _probe(made).run(_place(made, 1, tmp_path))
    assert (seen.saw, seen.provisioning) == (Saw.CLEAN, "python overlay")


def test_other_native_sources_are_never_run_over(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    seen = _probe(made).run(_place(made, 2, tmp_path))
    assert seen.saw is Saw.UNBUILDABLE
    assert "native sources differ" in seen.reason
    assert seen.starts == 0


def test_sources_for_a_cpu_alone_do_not_matter_to_a_gpu_build(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    seen = _probe(made, made[1][3]).run(_place(made, 3, tmp_path))
    assert seen.saw is Saw.CLEAN


def test_an_installed_commit_that_the_repository_lacks_cannot_be_compared(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    probe = EngineProbe(EngineSpec("vllm", "m"), "0123456789")
    seen = probe.run(_place(made, 1, tmp_path))
    assert seen.saw is Saw.UNBUILDABLE
    assert "cannot be compared" in seen.reason


@pytest.mark.parametrize("commit", ["f" * 40, None])
def test_a_run_that_cannot_prove_its_commit_does_not_vote(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path, commit: str | None
) -> None:
    def run(_spec: EngineSpec, _: RunListener) -> RunOutcome:
        return _outcome(Outcome.CRASHED, commit, diagnosis=DIAGNOSIS)

    probe = EngineProbe(EngineSpec("vllm", "m"), made[1][0], run)
    seen = probe.run(_place(made, 1, tmp_path))
    assert (seen.saw, seen.signature) == (Saw.UNBUILDABLE, None)
    assert "not proven" in seen.reason


def test_an_engine_that_cannot_be_set_up_does_not_vote(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    def run(_spec: EngineSpec, _: RunListener) -> RunOutcome:
        raise CannotDo("the model folder has no config.json", "give one")

    probe = EngineProbe(EngineSpec("vllm", "m"), made[1][0], run)
    seen = probe.run(_place(made, 1, tmp_path))
    assert seen.saw is Saw.UNBUILDABLE
    assert "config.json" in seen.reason


def test_a_repository_without_the_package_is_refused_before_anything_runs(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", [Commit({"a.py": "1"})])
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    with pytest.raises(CannotDo, match="has no vllm package"):
        EngineProbe(EngineSpec("vllm", "m")).check(mirror, shas[0])
    with pytest.raises(CannotDo, match=r"has no model file at .* \(b\.py\)"):
        EngineProbe(EngineSpec("embedded", "b.py")).check(mirror, shas[0])
    EngineProbe(EngineSpec("embedded", "a.py")).check(mirror, shas[0])


def test_a_model_is_named_so_that_a_resume_finds_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "repo"
    (source / "models").mkdir(parents=True)
    monkeypatch.chdir(source / "models")
    for given in ("m.py", str(source / "models/m.py")):
        spec = model_in_repository(EngineSpec("embedded", given), source)
        assert spec.model == "models/m.py"
    monkeypatch.chdir(tmp_path)
    assert model_in_repository(EngineSpec("embedded", "models/m.py"), source).model == "models/m.py"
    folder = model_in_repository(EngineSpec("vllm", "repo/models"), source)
    assert folder.model == str(source / "models")
    assert model_in_repository(EngineSpec("vllm", "org/name"), source).model == "org/name"
    assert model_in_repository(EngineSpec("embedded", ""), source).model == ""


def test_a_full_disk_is_no_commits_fault(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    def run(_spec: EngineSpec, _: RunListener) -> RunOutcome:
        try:
            Path("/dev/full").write_text("x")
        except OSError as error:
            raise CannotDo("the disk is full", "choose another --out") from error
        raise AssertionError("there was room")

    probe = EngineProbe(EngineSpec("vllm", "m"), made[1][0], run)
    with pytest.raises(CannotDo, match="disk is full"):
        probe.run(_place(made, 1, tmp_path))


def test_once_the_crashs_stage_is_known_runs_end_after_it(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    asked: list[Stage | None] = []

    def run(spec: EngineSpec, _: RunListener) -> RunOutcome:
        asked.append(spec.stop_after)
        return _outcome(Outcome.STARTED, made[1][1])

    probe = EngineProbe(EngineSpec("vllm", "m"), made[1][0], run)
    place = _place(made, 1, tmp_path)
    for stage in (None, "config", "serving", "something else"):
        probe.run(replace(place, stage=stage))
    given = EngineSpec("vllm", "m", stop_after=Stage.WEIGHTS)
    EngineProbe(given, made[1][0], run).run(replace(place, stage="config"))
    assert asked == [None, Stage.CONFIG, None, None, Stage.WEIGHTS]


def test_a_run_whose_verdict_is_of_no_use_is_ended(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    def run(_spec: EngineSpec, listener: RunListener) -> RunOutcome:
        listener.time_passed(1.0)
        place.cancelled.set()
        listener.time_passed(2.0)
        raise AssertionError("it went on")

    place = _place(made, 1, tmp_path)
    with pytest.raises(Cancelled):
        EngineProbe(EngineSpec("vllm", "m"), made[1][0], run).run(place)


def test_a_workers_engine_sees_its_own_devices(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    asked: list[dict[str, str]] = []

    def run(spec: EngineSpec, _: RunListener) -> RunOutcome:
        asked.append(dict(spec.environment))
        return _outcome(Outcome.STARTED, made[1][1])

    place = replace(_place(made, 1, tmp_path), devices="2,3")
    spec = EngineSpec("vllm", "m", environment={"A": "1"})
    EngineProbe(spec, made[1][0], run).run(place)
    assert asked[0].pop(MARK) == str(place.out)
    assert asked == [{"A": "1", "CUDA_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "2,3"}]


def test_starts_share_their_caches_only_where_that_cannot_matter(
    made: tuple[Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    seen: list[EngineSpec] = []

    def run(spec: EngineSpec, _: RunListener) -> RunOutcome:
        seen.append(spec)
        return _outcome(Outcome.STARTED, made[1][0])

    for kind, stage in (("vllm", "capture"), ("vllm", None), ("embedded", "capture")):
        spec = EngineSpec(kind, "m", environment={"TRITON_CACHE_DIR": "/given"})  # type: ignore[arg-type]
        place = replace(_place(made, 0, tmp_path), stage=stage)
        EngineProbe(spec, made[1][0], run).run(place)
    assert [("VLLM_CACHE_ROOT" in spec.environment) for spec in seen] == [True, False, False]
    assert {spec.environment["TRITON_CACHE_DIR"] for spec in seen} == {"/given"}


@pytest.mark.parametrize("returned", [True, False])
def test_memory_that_stays_on_a_gpu_makes_the_device_suspect(returned: bool) -> None:
    memory = GpuMemory(0, "GPU-0", "H200", 8 << 30, 0, 3 << 30, returned=returned)
    outcome = _outcome(Outcome.STARTED, "c" * 40, gpu_memory=GpuMemoryFacts((memory,)))
    seen = observe(outcome, "worktree", 0.0)
    assert (seen.saw, seen.suspect) == (Saw.CLEAN, not returned)
