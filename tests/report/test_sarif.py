from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from capdoctor.model import Diagnosis
from capdoctor.report.sarif import sarif
from tests.helpers.samples import CLEAN, SPARSE

# The published schema of OASIS, sarif-2.1/schema of its sarif-spec repository.
SCHEMA = Path(__file__).parent.parent / "data/report/sarif-schema-2.1.0.json"


@pytest.mark.parametrize(
    "diagnoses",
    [{}, {"a b.log": SPARSE}, {"clean.log": CLEAN}, {"x/[1].log": SPARSE, "clean.log": CLEAN}],
    ids=["none", "crash", "clean", "several"],
)
def test_the_text_is_valid_sarif(diagnoses: dict[str, Diagnosis]) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(
        json.loads(sarif(diagnoses)), schema, format_checker=jsonschema.FormatChecker()
    )


def test_the_class_is_the_rule_and_the_log_the_artifact() -> None:
    run = json.loads(sarif({"a log.txt": SPARSE}))["runs"][0]
    result = run["results"][0]
    assert result["ruleId"] == "capture_event_outside_graph"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20log.txt"
    assert place["region"]["startLine"] == 412
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 440


def test_a_clean_log_is_an_artifact_without_a_result() -> None:
    run = json.loads(sarif({"clean.log": CLEAN}))["runs"][0]
    assert run["results"] == []
    assert len(run["artifacts"]) == 1
