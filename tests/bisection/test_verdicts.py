"""Only the same crash counts as bad."""

from __future__ import annotations

import pytest

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.verdicts import AROUND, Reference, first_crash, judge, reference_of
from capdoctor.model import Frame, ProbeVerdict

OURS = Observation(
    Saw.CRASH,
    "s1:ours",
    "s1~:loose",
    "RuntimeError: x in f",
    crash_class="capture_host_sync",
    root=Frame("vllm/a.py", 3, "forward_impl"),
)
REFERENCE = reference_of(OURS)


def _other(**more: object) -> Observation:
    options: dict[str, object] = {
        "signature": "s1:moved",
        "loose": "s1~:loose",
        "crash_class": "capture_host_sync",
        "root": Frame("vllm/b.py", 90, "forward_impl"),
        **more,
    }
    return Observation(Saw.CRASH, **options)  # type: ignore[arg-type]


def test_the_same_signature_is_bad_and_exactly_so() -> None:
    judged = judge(OURS, REFERENCE)
    assert (judged.verdict, judged.loosely) == (ProbeVerdict.BAD, False)


def test_the_same_error_class_and_function_in_a_moved_file_is_bad_and_said() -> None:
    judged = judge(_other(), REFERENCE)
    assert (judged.verdict, judged.loosely) == (ProbeVerdict.BAD, True)


@pytest.mark.parametrize(
    "change",
    [
        {"loose": "s1~:else"},
        {"crash_class": "capture_unpinned_copy"},
        {"crash_class": "unknown"},
        {"root": Frame("vllm/b.py", 1, "another_function")},
        {"root": None},
        {"loose": None},
    ],
)
def test_error_and_stage_alone_do_not_make_it_the_same_crash(change: dict[str, object]) -> None:
    judged = judge(_other(**change), REFERENCE)
    assert (judged.verdict, judged.label) == (ProbeVerdict.OTHER, "s1:moved")


def test_unknown_classes_never_match_loosely() -> None:
    seen = _other(crash_class="unknown")
    reference = Reference("s1:x", "s1~:loose", crash_class="unknown", function="forward_impl")
    assert judge(seen, reference).verdict is ProbeVerdict.OTHER


def test_an_import_that_fails_is_a_broken_commit() -> None:
    judged = judge(_other(stage="import", loose=None), REFERENCE)
    assert judged.verdict is ProbeVerdict.UNBUILDABLE
    assert judged.label.startswith("unbuildable")


def test_an_import_that_fails_as_asked_is_bad() -> None:
    seen = Observation(Saw.CRASH, "s1:import", stage="import")
    assert judge(seen, reference_of(seen)).verdict is ProbeVerdict.BAD


@pytest.mark.parametrize("around", sorted(AROUND))
def test_what_the_machine_did_never_votes(around: str) -> None:
    assert judge(_other(crash_class=around), REFERENCE).verdict is ProbeVerdict.INFRA


def test_what_the_machine_did_can_still_be_what_is_asked_for() -> None:
    seen = Observation(Saw.CRASH, "s1:busy", crash_class="gpu_memory_busy")
    assert judge(seen, reference_of(seen)).verdict is ProbeVerdict.BAD


def test_a_hang_is_bad_only_if_a_hang_is_looked_for() -> None:
    hang = Observation(Saw.HANG, "s1:ours")
    assert judge(hang, REFERENCE).verdict is ProbeVerdict.HANG
    assert judge(hang, Reference(None, hang=True)).verdict is ProbeVerdict.BAD
    assert judge(OURS, Reference(None, hang=True)).verdict is ProbeVerdict.OTHER


def test_any_failure_takes_other_crashes_but_no_broken_builds() -> None:
    assert judge(_other(loose=None), REFERENCE, any_failure=True).verdict is ProbeVerdict.BAD
    broken = Observation(Saw.UNBUILDABLE, reason="no")
    assert judge(broken, REFERENCE, any_failure=True).verdict is ProbeVerdict.UNBUILDABLE


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (Observation(Saw.CRASH, "s1:a"), "s1:a"),
        (Observation(Saw.CLEAN), None),
        (Observation(Saw.CRASH), None),
        (Observation(Saw.CRASH, "s1:a", crash_class="gpu_memory_busy"), None),
        (Observation(Saw.UNBUILDABLE, "s1:a"), None),
    ],
)
def test_the_first_reproduction_becomes_the_reference(
    seen: Observation, wanted: str | None
) -> None:
    found = first_crash(seen)
    assert (found.signature if found else None) == wanted


def test_a_first_hang_is_a_reference_too() -> None:
    found = first_crash(Observation(Saw.HANG))
    assert found is not None
    assert found.hang
