"""The bundled signatures: well formed, each with its own logs, none claiming another's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capdoctor.diagnosis import case as case_module
from capdoctor.diagnosis import diagnose, pack, store
from capdoctor.diagnosis.matching import Match, Subject, best_match, match_one
from capdoctor.diagnosis.schema import check
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.tables import PACKED, bundled_signatures, table
from capdoctor.model import STAGE_ORDER
from tests.diagnosis.expected import DATA, expected_logs

FILES = bundled_signatures()
SIGNATURES = store.bundled()
COMPONENTS = {"vllm", "sglang", "aiter", "flashinfer", "triton", "torch", "nccl", "driver"}
COMPONENTS |= {"user_config", "other"}
FIXES = {None, "sparse-mla", "fold-indptr"}


def test_packed_file_is_fresh() -> None:
    assert PACKED.read_text(encoding="utf-8") == pack.pack(), "python -m capdoctor.diagnosis.pack"


@pytest.mark.parametrize(("name", "content"), FILES, ids=[name for name, _ in FILES])
def test_file_keeps_to_the_schema(name: str, content: dict[str, object]) -> None:
    assert check(content) == []


def test_ids_are_unique() -> None:
    ids = [signature.id for signature in SIGNATURES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda one: one.id)
def test_values_are_those_of_the_taxonomy(signature: Signature) -> None:
    assert signature.component in COMPONENTS | {None}
    assert signature.fix in FIXES
    assert signature.title


def test_taxonomy_is_whole() -> None:
    classes = table("classes")["classes"]
    assert len(classes) == 45
    for row in classes.values():
        assert row["component"] in COMPONENTS | {""}
        assert row.get("stage") in {None, *STAGE_ORDER}
        assert row["cause"].endswith(".")
        assert all(set(workaround) == {"do", "cost"} for workaround in row["workarounds"])


NEGATIVE = {"clean_startup", "user_interrupt", "serving_crash"}


def test_every_class_with_a_crash_has_a_signature() -> None:
    covered = {signature.crash_class for signature in SIGNATURES}
    assert set(table("classes")["classes"]) - covered <= NEGATIVE


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda one: one.id)
def test_signature_names_logs_that_exist(signature: Signature) -> None:
    assert signature.tests
    for name in signature.tests:
        assert (DATA / name).is_file()


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda one: one.id)
def test_signature_fits_its_own_logs(signature: Signature, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[str] = []

    def watching(signatures: Sequence[Signature], subject: Subject) -> Match | None:
        if match_one(signature, subject) is not None:
            fitted.append(signature.id)
        return best_match(signatures, subject)

    monkeypatch.setattr(case_module, "best_match", watching)
    for name in signature.tests:
        fitted.clear()
        diagnosis = diagnose(DATA / name)
        if signature.crash_class == "startup_hang":
            assert diagnosis.crash_class == "startup_hang"
        else:
            assert fitted, name


def test_no_known_issue_is_claimed_for_a_log_of_another_class() -> None:
    claims = {one.known.url: one.crash_class for one in SIGNATURES if one.known is not None}
    for expected in expected_logs():
        known = diagnose(expected.log).known_issue
        if known is not None:
            assert claims[known.url] == expected.answer["class"], expected.name
