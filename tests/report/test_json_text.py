from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.model import Diagnosis, ErrorInfo, Frame, ProcessRef, Stage, Verdict
from capdoctor.report.json_text import document, to_json


def diagnosis() -> Diagnosis:
    return Diagnosis(
        verdict=Verdict.STARTUP_CRASH,
        crash_class="capture_host_sync",
        stage=Stage.CAPTURE,
        component="vllm",
        error=ErrorInfo("torch.AcceleratorError", "CUDA error: \udc80", 900),
        root_frame=Frame("vllm/a.py", 3, "f"),
        raised_at=None,
        process=ProcessRef("EngineCore", 7, 0),
        confidence="likely",
    )


def test_the_class_has_its_contract_name_and_enumerations_are_values() -> None:
    body = json.loads(document("capdoctor.diagnosis/1", diagnosis()))
    assert body["schema"] == "capdoctor.diagnosis/1"
    assert (body["class"], body["stage"], body["verdict"]) == (
        "capture_host_sync",
        "capture",
        "startup_crash",
    )
    assert "crash_class" not in body


def test_the_document_is_ascii_whatever_the_log_held() -> None:
    assert document("x/1", diagnosis()).isascii()


def test_paths_tuples_and_mappings_have_a_json_form() -> None:
    assert to_json({"a": (Path("/x"), None, 1.5)}) == {"a": ["/x", None, 1.5]}


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        to_json(object())
