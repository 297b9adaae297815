"""Which error explains which, told by the follow-ons of an answer."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis import diagnose, diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import DATA

OPEN = DATA / "corpus"
START = "(EngineCore pid=9) INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.29.0)"
START += " with config: x\n"


def answer_to(text: str) -> Diagnosis:
    return diagnose_parsed(read_text(START + text), store.load(), None)


def reasons(diagnosis: Diagnosis) -> str:
    return "\n".join(f"{one.type}: {one.message} <- {one.why}" for one in diagnosis.follow_on)


def test_echo_of_a_failed_capture_is_a_follow_on() -> None:
    told = reasons(diagnose(OPEN / "vllm-48749-mrv2-mtp-capture.log"))
    assert "previous error during capture <- capture_end only reports" in told


def test_engine_and_front_end_pass_on_what_a_worker_said() -> None:
    told = reasons(diagnose(OPEN / "vllm-56785-sparse-mla-event.log"))
    assert "Worker failed with error" in told
    assert "the engine process passes on" in told
    assert "the front end only says" in told


def test_other_ranks_fail_in_the_same_way() -> None:
    told = reasons(diagnose(OPEN / "vllm-57759-engram-side-stream.log"))
    assert "another rank failed in the same way" in told


def test_watchdog_notices_the_same_fault_again() -> None:
    told = reasons(diagnose(OPEN / "vllm-30044-ima-capture.log"))
    assert "illegal memory access" in told


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Worker failed with error 'CUDA error: x', please", "Worker"),
        ("Engine core initialization failed. See root cause above.", "EngineCore"),
        ("CUDA error: operation failed due to a previous error during capture", "CUDA_LOG_FILE"),
        ("[Errno 32] Broken pipe", "other end"),
        ("NCCL error: remote process exited or there was a network error", "other ranks"),
    ],
)
def test_follow_on_alone_says_where_to_look(text: str, hint: str) -> None:
    kind = "BrokenPipeError" if "pipe" in text else "RuntimeError"
    diagnosis = answer_to(f"{kind}: {text}\n")
    assert diagnosis.crash_class == "root_cause_not_in_log"
    assert diagnosis.verdict == "root_cause_not_in_log"
    assert hint in diagnosis.cause
    assert diagnosis.next


def test_broken_pipe_after_a_killed_engine_is_not_the_root() -> None:
    diagnosis = answer_to(
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."
        " Failed core proc(s): {'EngineCore': -9}\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 370, in _send\n'
        "    n = write(self._handle, buf)\n"
        "BrokenPipeError: [Errno 32] Broken pipe\n"
    )
    assert diagnosis.error is not None
    assert (diagnosis.crash_class, diagnosis.error.type) == ("native_crash", "SIGKILL")
    assert diagnosis.confidence == "possible"


def test_first_of_a_chain_is_the_root_unless_it_is_a_stepping_stone() -> None:
    chain = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/vllm/model_executor/models/registry.py", line 1, in get\n'
        "    return self.models[name]\n"
        "KeyError: 'NovaForCausalLM'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/vllm/model_executor/models/registry.py", line 9, in resolve\n'
        "    raise ValueError(message)\n"
        "ValueError: Model architectures ['NovaForCausalLM'] are not supported for now.\n"
    )
    diagnosis = answer_to(chain)
    assert diagnosis.error is not None
    assert (diagnosis.crash_class, diagnosis.error.type) == ("config_invalid", "ValueError")


def test_warning_with_a_traceback_is_no_root() -> None:
    diagnosis = diagnose(OPEN / "real-vllm032-cpu-clean-scary.log")
    assert diagnosis.verdict == "clean_startup"
    assert diagnosis.error is None


def test_nothing_follows_a_ctrl_c() -> None:
    diagnosis = diagnose(OPEN / "vllm-19196-ctrl-c.log")
    assert diagnosis.verdict == "user_interrupt"


def test_crash_before_a_ctrl_c_is_a_crash() -> None:
    text = (OPEN / "vllm-41848-mig-uuid.log").read_bytes().decode() + "^C\n"
    assert diagnose_parsed(read_text(text), store.load(), None).crash_class == "device_id_uuid"


def test_second_run_of_a_log_is_the_one_that_counts() -> None:
    clean = (OPEN / "real-vllm030-h200-clean-piecewise.log").read_text(encoding="utf-8")
    crashed = (OPEN / "vllm-20361-undefined-symbol.log").read_text(encoding="utf-8")
    diagnosis = diagnose_parsed(read_text(clean + crashed), store.load(), None)
    assert diagnosis.crash_class == "abi_mismatch"
    assert any("another run" in warning for warning in diagnosis.warnings)
