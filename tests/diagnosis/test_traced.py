"""What the tracer saw makes the answer of a log surer, or gives it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose, diagnose_all
from capdoctor.model import (
    CaptureTrace,
    Diagnosis,
    ErrorInfo,
    Frame,
    Offence,
    OffenceKind,
    RunFacts,
    Stage,
    TracedCall,
    Verdict,
)
from capdoctor.report.json_text import document
from tests.diagnosis.expected import DATA
from tests.diagnosis.trace_samples import (
    ERROR_900,
    ERROR_901,
    ERROR_904,
    ITEM,
    LOST,
    REFUSED,
    STACK,
    UNJOINED,
    invalidated,
    log_of,
    trace_of,
)

SPARSE = DATA / "corpus/real-vllm030-h200-sparse-mla.log"
BEFORE = "[16:21:14.429][140111][CUDA][E] "
RETURNED = "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)"
OOM = DATA / "corpus/vllm-17939-sampler-oom.log"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


def told(log: Path, trace: CaptureTrace | None, text: str | None = None) -> Diagnosis:
    if text is not None:
        log.write_text(text)
    return diagnose(log, facts=RunFacts(exit_code=1, trace=trace))


def test_what_only_the_end_of_the_capture_raised_is_explained_by_the_operation(log: Path) -> None:
    blind = told(log, None, log_of(LOST))
    assert blind.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG
    found = told(log, trace_of(invalidated()))
    assert (found.verdict, found.crash_class) == (Verdict.STARTUP_CRASH, "capture_host_sync")
    assert (found.stage, found.confidence) == (Stage.PROFILE_CUDAGRAPH_MEMORY, "confirmed")
    assert found.root_frame == STACK[-1]
    assert found.error is not None
    assert (found.error.code, found.error.name) == (900, "cudaErrorStreamCaptureUnsupported")
    assert (found.error.type, found.error.message) == (ERROR_900.type, ERROR_900.message)
    assert found.component == "vllm"
    assert (found.process.name, found.process.pid) == ("EngineCore", 77)
    assert found.trace == invalidated()
    assert found.fingerprint is not None
    assert found.fingerprint.startswith("t1:")
    assert any("901" in item.why or "capture_end" in item.why for item in found.follow_on)


def test_an_operation_whose_error_was_swallowed_is_still_named(log: Path) -> None:
    silent = replace(invalidated(), error=None)
    found = told(log, trace_of(silent), log_of(LOST))
    assert (found.crash_class, found.confidence) == ("capture_host_sync", "likely")
    assert found.root_frame == STACK[-1]
    assert found.error is not None
    assert found.error.code == 901


def test_an_operation_that_no_class_describes_is_named_and_not_forced_into_one(log: Path) -> None:
    odd = replace(
        invalidated(), error=None, call=replace(ITEM, operation="mine::op", called_as=None)
    )
    found = told(log, trace_of(odd), log_of(LOST))
    assert (found.verdict, found.crash_class) == (Verdict.STARTUP_CRASH, "unknown")
    assert (found.root_frame, found.confidence) == (STACK[-1], "unknown")


def test_the_same_error_in_log_and_trace_is_confirmed(log: Path) -> None:
    text = log_of(REFUSED, "choose_experts", "vllm/model_executor/layers/router.py")
    blind = told(log, None, text)
    assert (blind.crash_class, blind.confidence) == ("capture_host_sync", "possible")
    found = told(log, trace_of(invalidated()))
    assert (found.crash_class, found.confidence) == ("capture_host_sync", "confirmed")
    same = ("stage", "error", "root_frame", "raised_at", "fingerprint", "component", "process")
    assert [getattr(found, name) for name in same] == [getattr(blind, name) for name in same]
    rows = [item for item in found.evidence if item.source == "trace"]
    assert "aten::_local_scalar_dense" in rows[0].text
    assert "router.py:31 in choose_experts" in rows[0].text
    for part in ("capture #2", "id 4", "stream 0x5581", "MainThread 140000"):
        assert part in rows[0].why


def test_both_ends_of_an_event_that_outlived_its_capture_are_shown() -> None:
    wait = TracedCall(
        "torch.cuda.Stream.wait_event",
        (Frame("vllm/v1/attention/backends/mla/index_group.py", 138, "_convert_once"),),
        source="side.wait_event(event)",
    )
    record = replace(wait, operation="torch.cuda.Event.record", number=3, capture=9)
    error = ErrorInfo("torch.AcceleratorError", "CUDA error: invalid argument", 1)
    offence = Offence(OffenceKind.EVENT_OUTSIDE, wait, record, error)
    blind, found = diagnose(SPARSE), told(SPARSE, trace_of(offence))
    same = ("crash_class", "stage", "root_frame", "fingerprint", "fix", "known_issue")
    assert [getattr(found, name) for name in same] == [getattr(blind, name) for name in same]
    assert found.confidence == "confirmed"
    texts = [item.text for item in found.evidence if item.source == "trace"]
    assert [text.split(" ")[0] for text in texts] == [wait.operation, record.operation]


def test_the_fork_that_was_not_joined_is_the_root_frame(log: Path) -> None:
    fork = TracedCall("torch.cuda.Stream.wait_stream", STACK, number=1)
    offence = Offence(OffenceKind.UNJOINED, fork, None, None, ERROR_904, (), 77)
    blind = told(log, None, log_of(UNJOINED))
    assert blind.crash_class == "capture_unjoined_stream"
    assert blind.root_frame != STACK[-1]
    found = told(log, trace_of(offence))
    assert (found.crash_class, found.root_frame) == ("capture_unjoined_stream", STACK[-1])
    assert (found.confidence, found.fingerprint) == ("confirmed", blind.fingerprint)


def test_another_thread_is_named_with_what_the_driver_says(log: Path) -> None:
    said = (f"{BEFORE}Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice_v2",)
    said = (*said, f"{BEFORE}{RETURNED} from cuMemHostAlloc")
    call = TracedCall("cuMemHostAlloc", (Frame("vllm/offload.py", 9, "pin"),), thread_id=140_111)
    offence = Offence(OffenceKind.OTHER_THREAD, call, None, None, ERROR_901, said, 77)
    found = told(log, trace_of(offence), log_of(LOST))
    assert (found.crash_class, found.confidence) == ("capture_other_thread", "confirmed")
    assert found.root_frame == call.place
    quoted = [item.text for item in found.evidence if item.source == "driver_log"]
    assert quoted == [f"{RETURNED} from cuMemHostAlloc"]
    guessed = told(log, trace_of(replace(offence, driver=())))
    assert (guessed.crash_class, guessed.confidence) == ("capture_other_thread", "likely")


def test_native_code_that_nobody_saw_is_not_given_a_class(log: Path) -> None:
    offence = Offence(OffenceKind.UNSEEN, ITEM, replace(ITEM, source="x = y + 1"), None, ERROR_901)
    found = told(log, trace_of(offence), log_of(LOST))
    assert found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG
    assert found.trace == offence
    assert len([item for item in found.evidence if item.source == "trace"]) == 2


def test_native_code_that_the_driver_names_is(log: Path) -> None:
    said = (f"{BEFORE}{RETURNED} from cuModuleLoadData",)
    offence = Offence(OffenceKind.UNSEEN, ITEM, None, None, ERROR_901, said, 77)
    found = told(log, trace_of(offence), log_of(LOST))
    assert (found.crash_class, found.confidence) == ("capture_jit_load", "confirmed")


def test_a_crash_that_has_nothing_to_do_with_a_broken_capture_stays_what_it_is() -> None:
    blind, found = diagnose(OOM, facts=RunFacts(exit_code=1)), told(OOM, trace_of(invalidated()))
    assert found.trace is None
    assert "does not follow from it" in found.warnings[-1]
    assert replace(found, warnings=blind.warnings) == blind


def test_a_start_that_went_well_has_no_error_that_could_follow(tmp_path: Path) -> None:
    ready = tmp_path / "ready.log"
    lost = log_of(LOST)
    ready.write_text(
        lost[: lost.index("(EngineCore pid=77) ERROR")]
        + "INFO:     Application startup complete.\n"
    )
    found = diagnose(ready, facts=RunFacts(trace=trace_of(invalidated())))
    assert found.verdict is Verdict.CLEAN_STARTUP
    assert found.trace is None
    assert found.warnings[-1].endswith("; nothing in this log follows from it")


def test_an_offence_of_another_process_is_not_behind_this_crash(log: Path) -> None:
    found = told(log, trace_of(invalidated(pid=99)), log_of(LOST))
    assert found.confidence != "confirmed"


SILENT = "(EngineCore pid=77) INFO 11-29 16:00:01 [core.py:93] Initializing a V1 LLM engine (v1)\n"


def test_a_log_that_ends_without_an_error_is_explained_as_far_as_it_goes(log: Path) -> None:
    early = invalidated(call=replace(ITEM, source="early"))
    found = told(log, trace_of(early, invalidated()), SILENT)
    assert (found.crash_class, found.confidence) == ("capture_host_sync", "possible")
    assert found.trace == invalidated()


def test_a_process_that_was_killed_was_not_killed_by_an_operation(log: Path) -> None:
    log.write_text(SILENT)
    facts = RunFacts(exit_code=-9, trace=trace_of(invalidated()))
    found = diagnose(log, facts=facts)
    assert (found.crash_class, found.trace) == ("native_crash", None)
    assert "does not follow from it" in found.warnings[-1]


def test_of_several_ranks_the_one_counts_that_the_log_tells_of(log: Path) -> None:
    other, own = invalidated(pid=78), invalidated(pid=77)
    for text in (log_of(LOST), log_of(REFUSED, "choose_experts", STACK[-1].file)):
        assert told(log, trace_of(other, own), text).trace == own


def test_the_offence_that_was_raised_wins_over_an_earlier_one_that_was_survived(log: Path) -> None:
    early = replace(
        invalidated(),
        call=replace(ITEM, source="early"),
        error=ErrorInfo("KeyError", "'probe'"),
        end_error=None,
    )
    found = told(log, trace_of(early, invalidated()), log_of(LOST))
    assert found.trace == invalidated()


def test_a_known_issue_outweighs_another_view_and_the_view_is_told() -> None:
    log = DATA / "corpus/aiter-5202-fold-seqlen-indptr.log"
    blind = diagnose(log)
    assert blind.error is not None
    offence = Offence(OffenceKind.OTHER_THREAD, ITEM, None, blind.error, ERROR_901)
    found = told(log, trace_of(offence))
    assert (found.crash_class, found.fix) == (blind.crash_class, blind.fix)
    assert "capture_other_thread" in found.warnings[-1]


def test_a_log_that_only_has_901_gets_the_known_issue_of_the_operation(log: Path) -> None:
    known = diagnose(DATA / "corpus/aiter-5202-fold-seqlen-indptr.log")
    assert known.error is not None
    assert known.root_frame is not None
    call = TracedCall("aten::copy_", (*STACK, known.root_frame), source="qo_indptr[0] = 0")
    offence = Offence(OffenceKind.RAISED, call, None, known.error, ERROR_901, (), 77)
    found = told(log, trace_of(offence), log_of(LOST))
    assert (found.crash_class, found.fix) == ("capture_unpinned_copy", "fold-indptr")
    assert found.root_frame == known.root_frame


@pytest.mark.parametrize("name", ["clean-eager", "core-sigsegv", "hub-offline"])
def test_other_logs_are_judged_as_without_a_trace(name: str) -> None:
    log = DATA / f"engines/vllm032-cpu-{name}.log"
    empty = told(log, CaptureTrace((), processes=2))
    assert empty == told(log, None)


def test_the_answer_is_json_with_the_trace_in_it(log: Path) -> None:
    found = told(log, trace_of(invalidated()), log_of(LOST))
    plain = json.loads(document("capdoctor.diagnosis/1", found))
    assert plain["trace"]["kind"] == "invalidated"
    assert plain["trace"]["call"]["stack"][-1]["function"] == "choose_experts"
    assert plain["trace"]["error"]["code"] == 900


def test_a_log_that_lost_its_cause_is_told_how_to_find_it(log: Path) -> None:
    lost = told(log, None, log_of(LOST))
    assert any(line.startswith("capdoctor repro") and "--trace" in line for line in lost.next)
    assert not any("--trace" in line for line in diagnose(OOM).next)


def test_a_wait_of_which_only_the_failure_was_seen_is_tied_by_its_line() -> None:
    """Traced on an H200: a profile hook sees a C function fail, and not with what."""
    ((_, found),) = diagnose_all(DATA / "tracer/flagship-h200")
    assert found.trace is not None
    assert found.trace.call.operation == "torch.Stream.wait_event"
    assert found.root_frame == Frame(
        "vllm/v1/attention/backends/mla/index_group.py", 134, "_convert_once"
    )
    assert not any("does not follow" in warning for warning in found.warnings)
    roles = [item.text.split(" ")[0] for item in found.evidence if item.source == "trace"]
    assert roles == ["torch.Stream.wait_event", "torch.cuda.Event.record"]


@pytest.mark.parametrize("change", ["line", "function", "pid"])
def test_a_failure_at_another_line_or_in_another_process_is_not_tied(change: str) -> None:
    log = DATA / "tracer/flagship-h200/engine.log"
    place = Frame("vllm/v1/attention/backends/mla/index_group.py", 134, "_convert_once")
    if change == "line":
        place = replace(place, line=135)
    if change == "function":
        place = replace(place, function="other")
    wait = TracedCall("torch.Stream.wait_event", (place,))
    pid = 1 if change == "pid" else None
    found = told(log, trace_of(Offence(OffenceKind.EVENT_OUTSIDE, wait, pid=pid)))
    assert found.trace is None
