"""What the process controller knows decides where a log is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose
from capdoctor.model import ProcessEnd, RunFacts, Stage
from tests.diagnosis.expected import DATA

ENGINES = DATA / "engines"
OPEN = DATA / "corpus"


@pytest.mark.parametrize("how", ["hung", "timed_out"])
def test_hang_is_a_hang_at_the_stage_that_was_seen(how: str, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.14.1) with\n")
    facts = RunFacts(how=how, stage=Stage.WEIGHTS)  # type: ignore[arg-type]
    diagnosis = diagnose(log, facts=facts)
    assert (diagnosis.verdict, diagnosis.crash_class) == ("startup_hang", "startup_hang")
    assert diagnosis.stage is Stage.WEIGHTS
    assert diagnosis.confidence == "likely"


def test_interrupted_run_is_no_crash() -> None:
    diagnosis = diagnose(OPEN / "vllm-19196-ctrl-c.log", facts=RunFacts(how="interrupted"))
    assert diagnosis.verdict == "user_interrupt"


@pytest.mark.parametrize(("signal", "confidence"), [("SIGKILL", "possible"), ("SIGSEGV", "likely")])
def test_process_that_a_signal_ended_is_named(tmp_path: Path, signal: str, confidence: str) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."
        " Failed core proc(s): {}\n"
    )
    ends = (ProcessEnd("EngineCore", 77, signal), ProcessEnd("main", 1, "exit 1"))
    facts = RunFacts(exit_code=1, stage=Stage.WEIGHTS, processes=ends)
    diagnosis = diagnose(log, facts=facts)
    assert (diagnosis.crash_class, diagnosis.stage) == ("native_crash", Stage.WEIGHTS)
    assert diagnosis.error is not None
    assert (diagnosis.error.type, diagnosis.confidence) == (signal, confidence)
    assert (diagnosis.process.name, diagnosis.process.pid) == ("EngineCore", 77)


def test_exit_by_signal_of_the_only_process_is_named(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.14.1) with\n")
    diagnosis = diagnose(log, facts=RunFacts(exit_code=-11, stage=Stage.DEVICE_INIT))
    assert diagnosis.error is not None
    assert diagnosis.error.type == "SIGSEGV"


def test_driver_log_becomes_evidence_and_confirms(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.30.0) with config: x\n"
        "torch.AcceleratorError: CUDA error: invalid argument\n"
    )
    driver_log = tmp_path / "driver.log"
    driver_log.write_text(
        "[16:21:14.1][140][CUDA][E] Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from"
        " cuCtxGetDevice_v2\n"
        "[16:21:14.4][140][CUDA][E] Event is not valid. This can be related to a graph capture that"
        " is no longer running\n"
        "[16:21:14.4][140][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamWaitEvent\n"
    )
    assert diagnose(log).crash_class == "unknown"
    facts = RunFacts(exit_code=1, driver_log=driver_log, stage=Stage.PROFILE_CUDAGRAPH_MEMORY)
    diagnosis = diagnose(log, facts=facts)
    assert diagnosis.crash_class == "capture_event_outside_graph"
    quoted = [item.text for item in diagnosis.evidence if "driver" in item.why]
    assert any("Event is not valid" in text for text in quoted)
    assert not any("CUDA_ERROR_INVALID_CONTEXT" in text for text in quoted)


def test_driver_log_that_is_missing_is_no_error(tmp_path: Path) -> None:
    facts = RunFacts(exit_code=1, driver_log=tmp_path / "none")
    assert diagnose(OPEN / "vllm-41848-mig-uuid.log", facts=facts).crash_class == "device_id_uuid"


REAL = {
    "clean-eager": ("clean_startup", None),
    "core-sigkill": ("root_cause_not_in_log", None),
    "core-sigsegv": ("native_crash", "SIGSEGV"),
    "heads-not-divisible": ("config_invalid", "create_engine_config"),
    "hub-offline": ("hub_access", "get_model_path"),
    "kv-no-memory": ("kv_cache_too_small", "_check_enough_kv_cache_memory"),
    "kv-one-request": ("kv_cache_too_small", "_check_enough_kv_cache_memory"),
    "max-model-len": ("config_invalid", "create_model_config"),
    "memory-busy": ("gpu_memory_busy", "__init__"),
    "remote-code": ("trust_remote_code", "create_model_config"),
    "worker-sigkill": ("root_cause_not_in_log", None),
    "worker-sigsegv": ("native_crash", "SIGSEGV"),
}


@pytest.mark.parametrize(("name", "wanted"), REAL.items(), ids=REAL)
def test_real_logs_of_the_cpu_engine(name: str, wanted: tuple[str, str | None]) -> None:
    crash_class, sign = wanted
    diagnosis = diagnose(ENGINES / f"vllm032-cpu-{name}.log")
    assert diagnosis.crash_class == crash_class
    signs = {diagnosis.root_frame.function if diagnosis.root_frame else None}
    signs.add(diagnosis.error.type if diagnosis.error else None)
    assert sign in signs
