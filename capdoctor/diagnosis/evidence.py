"""The lines of the log that an answer rests on, and the errors that it explains away."""

from __future__ import annotations

from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.incident import Incident, shown
from capdoctor.diagnosis.verdicts import Judgement
from capdoctor.model import Evidence, FollowOn

_MAX_CLUES = 5
_MAX_FOLLOW_ONS = 50
_TEXT = 400


def evidence_of(case: Case, judgement: Judgement) -> tuple[Evidence, ...]:
    """Give the lines that speak for the answer, in the order in which to read them."""
    rows: list[Evidence] = []
    root = case.root
    if root is not None:
        one = root.incident
        rows.append(
            Evidence(one.error_line, _line(case, one.error_line, one.text), "the root error")
        )
        if case.stage.line:
            why = f"the stage was {case.stage.stage}"
            rows.append(
                Evidence(case.stage.line, _line(case, case.stage.line, case.stage.text), why)
            )
        rows += _clues(case, one)
        rows += _same_elsewhere(case, one)
    if judgement.line:
        rows.append(Evidence(judgement.line, _line(case, judgement.line, ""), judgement.why))
    why = "the CUDA driver's own log"
    rows += [Evidence(0, text, why, "driver_log") for text in case.driver_log.sentences]
    return tuple(rows)


def _line(case: Case, number: int, otherwise: str) -> str:
    return shown(case.run.lines, number, otherwise.split("\n", 1)[0])[:_TEXT]


def _clues(case: Case, one: Incident) -> list[Evidence]:
    near = [clue for clue in case.collected.clues if abs(clue.line - one.line) <= 400]  # noqa: PLR2004
    return [
        Evidence(clue.line, _line(case, clue.line, clue.text), "a native line beside it")
        for clue in near[:_MAX_CLUES]
    ]


def _same_elsewhere(case: Case, one: Incident) -> list[Evidence]:
    echoes = [
        other
        for other in case.incidents
        if other.index in case.explained
        and case.explained[other.index].rule in {"repeat", "death"}
        and case.explained[other.index].cause == one.index
    ]
    return [
        Evidence(other.error_line, _line(case, other.error_line, other.text), "says the same")
        for other in echoes[:2]
    ]


def follow_ons_of(case: Case) -> tuple[FollowOn, ...]:
    """Give the errors that another one explains, in file order."""
    rows = []
    told = {one.error_line for one in case.incidents if one.kind != "death"}
    for one in case.incidents:
        if one.kind == "death" and one.line in told:
            continue
        explanation = case.explained.get(one.index)
        is_root = case.root is not None and one is case.root.incident
        if explanation is None and not is_root and case.root is not None and one in case.root.chain:
            rows.append(
                FollowOn(one.type, one.first_line_of_message, one.error_line, "in its chain")
            )
        elif explanation is not None and not is_root:
            message = one.first_line_of_message
            rows.append(FollowOn(one.type, message, one.error_line, explanation.why))
    return tuple(rows[:_MAX_FOLLOW_ONS])
