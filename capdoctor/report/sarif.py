"""Diagnoses as SARIF 2.1.0: the class is the rule, the log is the artifact."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from capdoctor import __version__
from capdoctor.model import Diagnosis, Frame, Json, TracedCall, Verdict
from capdoctor.report.card import error_text, frame_text
from capdoctor.report.safe_text import one_line, printable
from capdoctor.report.trace_text import CallRole, call_text, calls_of

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HARMLESS = {Verdict.CLEAN_STARTUP, Verdict.USER_INTERRUPT}


def sarif(diagnoses: Mapping[str, Diagnosis]) -> str:
    """Give the SARIF text for diagnoses by the name of their log; a clean log has no result."""
    troubles = {name: item for name, item in diagnoses.items() if item.verdict not in _HARMLESS}
    rules = sorted({item.crash_class for item in troubles.values()})
    run: dict[str, Json] = {
        "tool": {"driver": _driver(rules, troubles.values())},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": quote(name)}} for name in diagnoses],
        "results": [_result(name, item, rules) for name, item in troubles.items()],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _driver(rules: list[str], diagnoses: Iterable[Diagnosis]) -> dict[str, Json]:
    causes = {item.crash_class: item.cause for item in diagnoses if item.cause}
    return {
        "name": "capdoctor",
        "version": __version__,
        "rules": [
            {"id": rule, "shortDescription": {"text": one_line(causes.get(rule) or rule)}}
            for rule in rules
        ],
    }


def _result(name: str, diagnosis: Diagnosis, rules: list[str]) -> dict[str, Json]:
    lines = [item.line for item in diagnosis.evidence if item.line]  # 0: the driver's own log
    result: dict[str, Json] = {
        "ruleId": diagnosis.crash_class,
        "ruleIndex": rules.index(diagnosis.crash_class),
        "level": "error",
        "message": {"text": _message(diagnosis)},
        "locations": [_location(name, lines[0] if lines else 1, None)],
        "relatedLocations": [
            _location(name, item.line, f"follows from it: {item.why}")
            for item in diagnosis.follow_on
            if item.line
        ],
        "properties": {
            "confidence": diagnosis.confidence,
            "stage": diagnosis.stage.value if diagnosis.stage else None,
            "component": diagnosis.component,
        },
    }
    if diagnosis.trace is not None:
        result["stacks"] = [_stack(role, call) for role, call in calls_of(diagnosis.trace)]
    if diagnosis.fingerprint:
        result["partialFingerprints"] = {"capdoctor/s1": diagnosis.fingerprint}
    return result


def _stack(role: CallRole, call: TracedCall) -> dict[str, Json]:
    """The Python stack of a call that the tracer saw; SARIF wants the innermost frame first."""
    frames: list[Json] = [_frame(frame) for frame in reversed(call.stack)]
    return {"message": {"text": f"{role.clause}: {call_text(call)}"}, "frames": frames}


def _frame(frame: Frame) -> dict[str, Json]:
    place: dict[str, Json] = {
        "artifactLocation": {"uri": quote(frame.file, errors="surrogatepass")}
    }
    if frame.line is not None:
        place["region"] = {"startLine": max(1, frame.line)}
    location: dict[str, Json] = {"physicalLocation": place}
    if frame.function:
        location["logicalLocations"] = [{"fullyQualifiedName": one_line(frame.function)}]
    return {"location": location}


def _message(diagnosis: Diagnosis) -> str:
    parts = [error_text(diagnosis.error), frame_text(diagnosis.root_frame), diagnosis.cause]
    return printable(" | ".join(part for part in parts if part) or diagnosis.crash_class)


def _location(name: str, line: int, text: str | None) -> dict[str, Json]:
    location: dict[str, Json] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(name)},
            "region": {"startLine": max(1, line)},
        }
    }
    if text:
        location["message"] = {"text": one_line(text)}
    return location
