"""``capdoctor classify``: read logs, name the root cause."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from capdoctor.commands import new_app

app = new_app()


class Format(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    SARIF = "sarif"


@app.command()
def classify(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="A log, '-', a folder, or a .gz .zst .xz .zip file."),
    ],
    form: Annotated[Format, typer.Option("--format", help="How to write the answer.")] = (
        Format.TEXT
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    rules: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of signatures of your own (TOML); may be repeated."),
    ] = None,
) -> None:
    """Name the root cause of a crash out of its log.

    Exit code 0: nothing wrong was found. 1: trouble was found, and that is the answer.
    """
    from capdoctor.commands import answers
    from capdoctor.errors import UsageError

    if as_json and form not in (Format.TEXT, Format.JSON):
        raise UsageError(f"--json contradicts --format {form.value}", "give one of the two")
    found = answers.gather(logs, tuple(rules or ()))
    answers.write_answer(found, Format.JSON.value if as_json else form.value)
    raise typer.Exit(answers.exit_code(found))
