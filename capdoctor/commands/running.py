"""What ``repro`` does around a run: the demos' list, the progress, the answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from capdoctor.commands.engine_spec import SCENARIO_PREFIX, check_consistent
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import EngineSpec, Outcome, RunOutcome

SCHEMA = "capdoctor.repro/1"
_FINE = (Outcome.STARTED, Outcome.STOPPED_AFTER_STAGE)


def required_model(
    model: str | None, scenario: str | None, arguments: Sequence[str] | None, argv: list[str]
) -> str:
    """Give the model, or say how to name one; a stray word is no engine argument.

    A scenario is its own model: ``scenario/NAME``.
    """
    passed_on = len(argv) - argv.index("--") - 1 if "--" in argv else 0
    if arguments and len(arguments) > passed_on:
        raise UsageError(
            f"Unexpected argument {arguments[0]!r}.",
            "Name the model with --model; engine arguments come after --.",
        )
    if scenario is not None:
        if model:
            raise UsageError("--model and --scenario contradict each other.", "Give one of them.")
        return f"{SCENARIO_PREFIX}{scenario}"
    if not model:
        raise UsageError(
            "No model was given.",
            "Give --model FOLDER, --model ORG/NAME, --model FILE.py or --model demo/NAME.",
        )
    return model


def show_demos(*, as_json: bool) -> int:
    """Write the bundled demos to stdout, one a line or as JSON; give the exit code."""
    from capdoctor.engines.embedded import list_demos
    from capdoctor.report.card import CardLine
    from capdoctor.report.json_text import document
    from capdoctor.report.terminal import show_card

    demos = list_demos()
    if as_json:
        sys.stdout.write(document("capdoctor.demos/1", {"demos": demos}) + "\n")
        return 0
    width = max(len(demo.name) for demo in demos)
    show_card([CardLine("", f"{demo.name:<{width}}  {demo.title}") for demo in demos])
    return 0


def answered(spec: EngineSpec, *, repeat: int, matrix: bool, as_json: bool) -> int:
    """Run the engine as asked, write the answer, give the exit code.

    Raises:
        UsageError: options contradict each other; nothing was started.
        CannotDo: the set-up failed, so that there is no answer.
    """
    check_consistent(spec, repeat=repeat, matrix=matrix)
    return answer(run_shown(spec, repeat=repeat, matrix=matrix), as_json=as_json)


def run_shown(spec: EngineSpec, *, repeat: int, matrix: bool) -> RunOutcome:
    """Run the engine with its progress on stderr."""
    from capdoctor.engines.matrix import run_matrix
    from capdoctor.engines.series import run_repeated
    from capdoctor.report.progress import progress

    display = progress()
    try:
        if matrix:
            return run_matrix(spec, listener=display)
        return run_repeated(spec, repeat, listener=display)
    finally:
        display.close()


def answer(outcome: RunOutcome, *, as_json: bool) -> int:
    """Write the answer and give the exit code of the contract.

    Raises:
        CannotDo: the set-up failed, so that there is no answer.
    """
    from capdoctor.report.json_text import document
    from capdoctor.report.run_card import run_card
    from capdoctor.report.terminal import show_card

    if outcome.outcome is Outcome.SETUP_FAILED:
        raise CannotDo(outcome.reason, _setup_hint(outcome))
    if as_json:
        sys.stdout.write(document(SCHEMA, outcome) + "\n")
    else:
        show_card(run_card(outcome))
    return 0 if outcome.outcome in _FINE else 1


def _setup_hint(outcome: RunOutcome) -> str:
    log = outcome.artifacts.get("log")
    return f"See what it printed: {log}" if log else ""
