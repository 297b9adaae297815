"""What ``classify`` does around the diagnosis: gather the logs, write the answer, say the code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from capdoctor.diagnosis import Comparison, CrashGroup, diagnose_all, group, same_crash
from capdoctor.errors import UsageError
from capdoctor.model import Diagnosis, Verdict

STDIN = "-"
_FINE = frozenset({Verdict.CLEAN_STARTUP, Verdict.USER_INTERRUPT})


def gather(logs: Sequence[str], rules: Sequence[Path]) -> dict[str, Diagnosis]:
    """Diagnose every log, by its name as the user knows it, in the order given.

    Raises:
        CannotDo: a log cannot be read.
        UsageError: stdin was named twice.
    """
    if list(logs).count(STDIN) > 1:
        raise UsageError("Standard input was named twice.", "Name '-' once.")
    answers: dict[str, Diagnosis] = {}
    for log in logs:
        source = sys.stdin.buffer if log == STDIN else Path(log)
        for name, diagnosis in diagnose_all(source, rules=rules):
            answers[_name(log, name)] = diagnosis
    return answers


def _name(log: str, member: str) -> str:
    if log == STDIN:
        return "stdin"
    return log if member in (log, str(Path(log))) else f"{log}/{member}"


def exit_code(answers: Mapping[str, Diagnosis]) -> int:
    """Give 0 where nothing is wrong, 1 where there is trouble in any of the logs."""
    return 0 if all(answer.verdict in _FINE for answer in answers.values()) else 1


def write_answer(answers: Mapping[str, Diagnosis], form: str) -> None:
    """Write the answer to stdout in the form asked for."""
    if form == "json":
        sys.stdout.write(_json(answers) + "\n")
    elif form == "sarif":
        from capdoctor.report.sarif import sarif

        sys.stdout.write(sarif(answers) + "\n")
    elif form == "md":
        sys.stdout.write(_markdown(answers))
    else:
        _text(answers)
    for answer in answers.values():
        _warn(answer)


def _json(answers: Mapping[str, Diagnosis]) -> str:
    from capdoctor.report.json_text import document, to_json

    if len(answers) == 1:
        return document("capdoctor.diagnosis/1", next(iter(answers.values())))
    logs = [{"log": name, "diagnosis": to_json(diagnosis)} for name, diagnosis in answers.items()]
    body = {"logs": logs, "groups": group(answers.items()), "comparison": _comparison(answers)}
    return document("capdoctor.diagnoses/1", body)


def _comparison(answers: Mapping[str, Diagnosis]) -> Comparison | None:
    """Say whether two logs are the same crash; more than two are grouped only."""
    if len(answers) != 2:  # noqa: PLR2004 - a pair
        return None
    first, second = answers.values()
    return same_crash(first, second)


def _markdown(answers: Mapping[str, Diagnosis]) -> str:
    from capdoctor.report.markdown import code, diagnosis_markdown

    if len(answers) == 1:
        return diagnosis_markdown(next(iter(answers.values())))
    parts = [f"## {code(name)}\n\n{diagnosis_markdown(item)}" for name, item in answers.items()]
    alike = [f"- {_group_text(found)}" for found in group(answers.items())]
    return "\n".join([*parts, "## Which are alike", "", *alike]) + "\n"


def _text(answers: Mapping[str, Diagnosis]) -> None:
    from capdoctor.report.card import CardLine, diagnosis_card
    from capdoctor.report.safe_text import one_line
    from capdoctor.report.terminal import show_card

    if len(answers) == 1:
        show_card(diagnosis_card(next(iter(answers.values()))))
        return
    for name, diagnosis in answers.items():
        first = diagnosis_card(diagnosis)[0]
        show_card([CardLine("", f"{one_line(name)}: {first.text}", first.tone)])
    show_card([CardLine("alike", _group_text(found)) for found in group(answers.items())])
    comparison = _comparison(answers)
    if comparison is not None:
        show_card([CardLine("", f"{comparison.sameness}: {one_line(comparison.why)}")])


def _group_text(found: CrashGroup) -> str:
    from capdoctor.report.safe_text import one_line

    names = ", ".join(one_line(name) for name in found.names)
    return f"{found.crash_class} {found.fingerprint or ''}".rstrip() + f": {names}"


def _warn(answer: Diagnosis) -> None:
    from capdoctor.report.safe_text import one_line

    if answer.verdict is Verdict.NOT_AN_ENGINE_LOG:
        sys.stderr.write("This is no log of an inference engine, as far as can be seen.\n")
        sys.stderr.write("hint: give the engine's whole output, stdout and stderr\n")
    for warning in answer.warnings:
        sys.stderr.write(f"warning: {one_line(warning)}\n")
