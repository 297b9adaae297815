"""Same crash, same fingerprint; another crash, another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.diagnosis import diagnose, diagnose_parsed, group, same_crash, store
from capdoctor.diagnosis.fingerprint import module_of, normalised_message
from capdoctor.logs import StackFrame, read_text
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import DATA, expected_logs

RECORD = "(EngineCore pid={pid}) ERROR 08-12 10:00:0{second} [core.py:1374] "
FRAMES = """EngineCore failed to start.
Traceback (most recent call last):
  File "{root}/vllm/v1/worker/gpu_worker.py", line {line}, in compile_or_warm_up_model
    self.model_runner.capture_model()
  File "{root}/vllm/v1/worker/gpu/model_runner.py", line {line}, in capture_model
    self.cudagraph_manager.capture(
  File "{root}/vllm/model_executor/models/nova.py", line {line}, in forward
    longest = lengths.max().item()
torch.AcceleratorError: CUDA error: {text}
"""


def crash(
    *, pid: int = 300, line: int = 10, root: str = "/usr/lib/python3/dist-packages", text: str = ""
) -> Diagnosis:
    body = FRAMES.format(
        root=root, line=line, text=text or "operation not permitted when stream is capturing"
    )
    prefix = RECORD.format(pid=pid, second=pid % 10)
    log = "".join(prefix + one + "\n" for one in body.split("\n"))
    return diagnose_parsed(read_text(log), store.load(), None)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 4_000_000),
    st.integers(1, 9_999),
    st.sampled_from(["/opt/venv/lib/python3.12/site-packages", "/home/u/envs/x/site-packages"]),
)
def test_pid_line_and_path_do_not_enter(pid: int, line: int, root: str) -> None:
    assert crash(pid=pid, line=line, root=root).fingerprint == crash().fingerprint


def test_recipe_is_named_and_stable() -> None:
    fingerprint = crash().fingerprint
    assert fingerprint is not None
    assert fingerprint.startswith("s1:")
    assert len(fingerprint) == 19
    loose = crash().fingerprint_loose
    assert loose is not None
    assert loose.startswith("s1~:")


def test_another_error_is_another_crash() -> None:
    other = crash(text="capturing stream has unjoined work")
    assert other.fingerprint != crash().fingerprint
    assert same_crash(other, crash()).sameness == "different"


def test_same_error_elsewhere_is_similar() -> None:
    mine = crash()
    log = DATA / "diagnosis/capture_host_sync/barrier-in-plugin.log"
    comparison = same_crash(mine, diagnose(log))
    assert comparison.sameness == "similar"
    assert not comparison.same


def test_same_crash_is_the_same() -> None:
    comparison = same_crash(crash(pid=1), crash(pid=2))
    assert comparison.same
    assert "s1:" in comparison.why


def test_clean_log_and_crash_are_different() -> None:
    clean = diagnose(DATA / "diagnosis/clean_startup/request-error.log")
    assert same_crash(clean, crash()).sameness == "different"
    assert same_crash(clean, clean).sameness == "unknown"


def test_logs_are_grouped_by_crash_largest_first() -> None:
    other = crash(text="capturing stream has unjoined work")
    groups = group([("a", other), ("b", crash(pid=1)), ("c", crash(pid=2))])
    assert [one.names for one in groups] == [("b", "c"), ("a",)]


def test_logs_of_different_crashes_have_different_fingerprints() -> None:
    seen: dict[str, str] = {}
    for expected in expected_logs():
        diagnosis = diagnose(expected.log)
        if diagnosis.fingerprint is not None:
            first = seen.setdefault(diagnosis.fingerprint, expected.answer["class"])
            assert first == expected.answer["class"], expected.name


@pytest.mark.parametrize(
    ("file", "function", "module"),
    [
        ("vllm/v1/worker/gpu_worker.py", "init_device", "vllm.v1.worker.gpu_worker:init_device"),
        ("/srv/models/mine.py", "forward", "mine:forward"),
        ("torchinductor/ab/cabcdefabcdef12.py", "call", "inductor:call"),
        ("torchinductor/xy/c99.py", "triton_poi_fused_add_3", "inductor:triton_poi_fused_add_"),
    ],
)
def test_modules(file: str, function: str, module: str) -> None:
    assert module_of(StackFrame(file, 1, function, "", file)) == module


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Tried to allocate 2.00 GiB", "Tried to allocate 448.00 GiB"),
        ("no file '/home/a/x.bin'", "no file '/srv/b/y.bin'"),
        ("at 0x7f21c0000000", "at 0x00aa"),
    ],
)
def test_messages_are_normalised(a: str, b: str) -> None:
    assert normalised_message(a) == normalised_message(b)
