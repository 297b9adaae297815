"""Several starts in one file: told apart where one ended, not where one only has many parts."""

from __future__ import annotations

import pytest

from capdoctor.logs import read_text

INFO = "INFO 01-01 00:00:00 [x.py:1] "
FAILS = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n'


def starts(text: str) -> list[int]:
    return [run.first_line for run in read_text(text).runs]


def begin(pid: int) -> str:
    return (
        f"(APIServer pid={pid}) {INFO}vLLM API server version 0.19.0\n"
        f"(APIServer pid={pid}) {INFO}non-default args: {{'a': 1}}\n"
    )


def engine(name: str, pid: int) -> str:
    return f"({name} pid={pid}) {INFO}Initializing a V1 LLM engine (v0.19.0) with config: a=1\n"


def test_restart_loop_with_the_same_pid_is_one_run_each() -> None:
    once = begin(1) + engine("EngineCore", 9) + f"(EngineCore pid=9) {INFO}Model loading took 1\n"
    assert starts(once * 3) == [1, 5, 9]


def test_restart_after_a_failure_in_the_configuration() -> None:
    assert starts((begin(1) + FAILS) * 2) == [1, 6]


def test_failure_at_import_belongs_to_the_run_that_failed() -> None:
    platform = INFO + "Automatically detected platform cuda.\n"
    assert starts(platform + FAILS + platform + FAILS) == [1, 5]


def test_engines_of_data_parallel_ranks_are_one_run() -> None:
    text = begin(1) + "".join(engine(f"EngineCore_DP{i}", 20 + i) for i in range(4))
    assert starts(text + f"(EngineCore_DP0 pid=20) {INFO}Model loading took 1\n" * 2) == [1]


def test_offline_engines_one_after_the_other_are_two_runs() -> None:
    once = engine("EngineCore", 5) + f"(EngineCore pid=5) {INFO}Model loading took 1\n"
    again = once.replace("pid=5", "pid=6")
    assert starts(once + again) == [1, 3]


def test_nodes_of_one_pod_group_are_one_run() -> None:
    lines = begin(1).splitlines()
    both = [f"[pod/vllm-{i}/server] {line}" for line in lines for i in (0, 1)]
    tail = [f"[pod/vllm-0/server] {line}" for line in engine("EngineCore", 3).splitlines()]
    late = [f"[pod/vllm-2/server] {line}" for line in lines]
    assert starts("\n".join(both + tail + late) + "\n") == [1]


def test_text_without_any_engine_is_one_run_without_marks() -> None:
    (run,) = read_text("hello\nworld\n").runs
    assert (run.marks, run.engine, run.ready, run.last_line) == ((), None, None, 2)


LATER = "INFO 01-01 00:00:30 [core.py:90] "
V0 = (
    "INFO 01-01 00:00:00 llm_engine.py:84] Initializing an LLM engine (v0.6.3) with config\n"
    f"{LATER}Loading model weights took 1 GB\nINFO:     Application startup complete.\n"
)
OFFLINE = engine("EngineCore", 9) + (
    f"(EngineCore pid=9) {LATER}init engine (profile, create kv cache, warmup model) took 1 s\n"
)
V1 = begin(1) + OFFLINE
SGLANG = (
    "[2025-04-01 23:22:06 TP0] Init torch distributed begin.\n"
    "[2025-04-01 23:22:06 TP0] Load weight begin. avail mem=1\n"
    "[2025-04-01 23:22:06 TP0] Init torch distributed begin.\n"  # of the draft model
    "[2025-04-01 23:22:06] The server is fired up and ready to roll!\n"
)
CLEAN = {"V0": V0, "V1": V1, "offline": OFFLINE, "SGLang": SGLANG}


@pytest.mark.parametrize("first", sorted(CLEAN))
@pytest.mark.parametrize("second", sorted(CLEAN))
def test_any_engine_begins_a_run_after_a_clean_one(first: str, second: str) -> None:
    line = len(CLEAN[first].splitlines()) + 1
    assert starts(CLEAN[first] + CLEAN[second]) == [1, line]


def test_engine_added_to_a_serving_group_begins_no_run() -> None:
    assert starts(V1 + engine("EngineCore_DP4", 77)) == [1]
