"""The capture tracer inside the real vLLM CPU engine, which it must not change in any way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.environment import engine_environment
from capdoctor.engines.pythons import find_python
from capdoctor.engines.start import run
from capdoctor.engines.tracer_plugin import PLUGIN, Tracing, lay_out
from capdoctor.model import EngineSpec, Outcome, RunOutcome, Stage

pytestmark = pytest.mark.engine

BREAK = """

def determine_available_memory(self):
    raise KeyError("no memory today")


CPUWorker.determine_available_memory = determine_available_memory
"""
RESOLVERS = {"lora_filesystem_resolver", "lora_hf_hub_resolver"}
ONE = "lora_hf_hub_resolver"
LOAD = """
import json, os, sys
from vllm.plugins import DEFAULT_PLUGINS_GROUP, load_plugins_by_group
for allowed in json.loads(sys.argv[1]):
    os.environ.pop("VLLM_PLUGINS", None)
    if allowed is not None:
        os.environ["VLLM_PLUGINS"] = allowed
    print("loaded", json.dumps(sorted(load_plugins_by_group(DEFAULT_PLUGINS_GROUP))))
"""


@pytest.fixture
def spec(spec: EngineSpec) -> EngineSpec:
    assert spec.out is not None
    return replace(spec, out=spec.out.with_name("traced"), trace=True)


def untraced(spec: EngineSpec) -> EngineSpec:
    assert spec.out is not None
    return replace(spec, trace=False, out=spec.out.with_name("untraced"))


def processes(answer: RunOutcome) -> set[str]:
    """Give the names of the processes in which the tracer was installed."""
    folder = Path(answer.artifacts["trace"])
    lines = [file.read_text().splitlines()[0] for file in folder.glob("trace-*.jsonl")]
    return {json.loads(line)["process"] for line in lines}


def test_a_traced_start_is_the_same_start(spec: EngineSpec) -> None:
    answer, blind = run(spec), run(untraced(spec))
    assert (answer.outcome, blind.outcome) == (Outcome.STARTED, Outcome.STARTED), answer.reason
    assert [span.name for span in answer.stages] == [span.name for span in blind.stages]
    assert {end.name for end in answer.processes} == {end.name for end in blind.processes}
    assert {"MainProcess", "EngineCore"} <= processes(answer)
    assert answer.trace is not None
    assert (answer.trace.offences, answer.trace.faults) == ((), ())
    assert answer.trace.processes >= 2
    assert answer.notes == ()


def test_a_traced_crash_of_another_tree_is_the_same_crash(spec: EngineSpec, tmp_path: Path) -> None:
    spec = replace(spec, source=broken_tree(spec, tmp_path / "tree"))
    found, blind = run(spec).diagnosis, run(untraced(spec)).diagnosis
    assert found is not None
    assert blind is not None
    assert found.root_frame is not None
    assert found.root_frame.function == "determine_available_memory"
    same = ("verdict", "crash_class", "stage", "component", "error", "root_frame", "raised_at")
    same = (*same, "fingerprint", "confidence")
    assert [getattr(found, name) for name in same] == [getattr(blind, name) for name in same]


def broken_tree(spec: EngineSpec, tree: Path) -> Path:
    """Copy the installed vLLM and make its CPU worker fail once the model is loaded."""
    installed = find_python(spec.python).vllm
    assert installed is not None
    ignore = shutil.ignore_patterns("*.so", "__pycache__", "*.json", "_version.py")
    shutil.copytree(installed.package, tree / "vllm", ignore=ignore)
    with (tree / "vllm/v1/worker/cpu_worker.py").open("a") as file:
        file.write(BREAK)
    return tree


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"VLLM_WORKER_MULTIPROC_METHOD": "fork"}, {"MainProcess", "EngineCore"}),
        ({"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}, {"MainProcess"}),
    ],
    ids=["fork", "one process"],
)
def test_it_is_in_every_process_however_they_are_made(
    spec: EngineSpec, variables: dict[str, str], names: set[str]
) -> None:
    answer = run(replace(spec, environment=variables, stop_after=Stage.DEVICE_INIT))
    assert answer.outcome is Outcome.STOPPED_AFTER_STAGE, answer.reason
    assert names <= processes(answer)
    assert answer.notes == ()


def test_the_plugins_of_others_are_loaded_as_before(vllm_python: Path, tmp_path: Path) -> None:
    lay_out(tmp_path / "plugin")
    tracing = Tracing(tmp_path / "trace", tmp_path / "plugin")
    cases: dict[str | None, set[str]] = {
        None: RESOLVERS,
        "": set(),
        "lora_hf_hub_resolver,x": {ONE},
    }
    base = {name: value for name, value in os.environ.items() if name != "VLLM_PLUGINS"}
    made = [environment_of(base, allowed, tracing, tmp_path) for allowed in cases]
    answers = loaded(vllm_python, made[0], [one.get("VLLM_PLUGINS") for one in made])
    assert answers == [{*others, PLUGIN} for others in cases.values()]
    assert loaded(vllm_python, base, list(cases)) == list(cases.values())


def environment_of(
    base: dict[str, str], allowed: str | None, tracing: Tracing, folder: Path
) -> dict[str, str]:
    return engine_environment(
        base | ({} if allowed is None else {"VLLM_PLUGINS": allowed}),
        run_id="x",
        tmpdir=folder,
        caches=folder / "caches",
        driver_log=folder / "driver.log",
        offline=True,
        python_path=(),
        tracing=tracing,
    )


def loaded(python: Path, environment: dict[str, str], allowed: list[str | None]) -> list[set[str]]:
    """Give what vLLM loads in this environment for each value of VLLM_PLUGINS."""
    done = subprocess.run(
        [python, "-c", LOAD, json.dumps(allowed)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    return [set(json.loads(line.removeprefix("loaded "))) for line in lines]
