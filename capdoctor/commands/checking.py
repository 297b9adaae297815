"""What ``check`` does around the checker: parse its options, write the answer, say the code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from capdoctor.capture.checker import (
    CheckOptions,
    check,
    parse_argument,
    parse_operator,
    parse_target,
)
from capdoctor.capture.static import scan
from capdoctor.errors import CannotDo
from capdoctor.model import Candidate, CheckResult, StaticResult
from capdoctor.report.findings import check_card, check_sarif, static_card
from capdoctor.report.json_text import document, to_json
from capdoctor.report.terminal import show_card

SCHEMA = "capdoctor.check/1"
_STRENGTH = ("likely", "possible", "weak")


def options(
    arguments: Sequence[str] | None,
    piecewise: bool,
    eager: Sequence[str] | None,
    warm_up: int,
    stubs: Sequence[str] | None,
    operators: Sequence[str] | None,
    stop_at_first: bool,
    as_torch: str | None,
) -> CheckOptions:
    """Give the checker's options for the texts of the command line.

    Raises:
        UsageError: one of them is not of its form.
    """
    return CheckOptions(
        arguments=tuple(parse_argument(text) for text in arguments or ()),
        piecewise=piecewise,
        eager=tuple(eager or ()),
        stop_at_first=stop_at_first,
        as_torch=as_torch,
        warm_up=warm_up,
        stubs=tuple(stubs or ()),
        operators=tuple(parse_operator(text) for text in operators or ()),
    )


def run(targets: Sequence[str], chosen: CheckOptions, form: str) -> int:
    """Check every target, write the answer, give the exit code."""
    parsed = [parse_target(text) for text in targets]
    with _stdout_kept():
        results = [check(target, chosen) for target in parsed]
    if form == "json":
        sys.stdout.write(_json(results) + "\n")
    elif form == "sarif":
        sys.stdout.write(check_sarif(results) + "\n")
    else:
        show_card(check_card(results))
    return 1 if any(result.findings for result in results) else 0


@contextlib.contextmanager
def _stdout_kept() -> Iterator[None]:
    """Let what the checked code prints go to stderr: stdout is the answer's alone.

    Below Python too: an extension or a child process writes to the descriptor.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _json(results: Sequence[CheckResult]) -> str:
    unknown = dict.fromkeys(name for result in results for name in result.covered.unknown)
    operations = sum(result.covered.operations for result in results)
    return document(
        SCHEMA,
        {
            "findings": [item for result in results for item in result.findings],
            "covered": {"operations": operations, "unknown": list(unknown)},
            "targets": [
                {"target": result.target, "findings": len(result.findings)} for result in results
            ],
        },
    )


def read(targets: Sequence[Path], weakest: str, form: str) -> int:
    """Read every tree, write the candidates, give the exit code."""
    results = [scan(target) for target in targets]
    kept = _STRENGTH[: _STRENGTH.index(weakest) + 1]
    shown = [[c for c in result.candidates if c.certainty in kept] for result in results]
    if form == "json":
        sys.stdout.write(_static_json(results, shown) + "\n")
    elif form == "sarif":
        sys.stdout.write(check_sarif([], [item for items in shown for item in items]) + "\n")
    else:
        for result, items in zip(results, shown, strict=True):
            show_card(static_card(result, items))
    return 1 if any(shown) else 0


def _static_json(results: Sequence[StaticResult], shown: Sequence[Sequence[Candidate]]) -> str:
    if not results:
        raise CannotDo("nothing was named to read")
    return document(
        SCHEMA,
        {
            "findings": [],
            "covered": {"operations": 0, "unknown": []},
            "candidates": [to_json(item) for items in shown for item in items],
            "read": [
                {
                    "target": result.target,
                    "files": result.files,
                    "functions": result.functions,
                    "unreadable": result.unreadable,
                }
                for result in results
            ],
        },
    )
