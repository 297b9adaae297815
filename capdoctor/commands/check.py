"""``capdoctor check``: find stream-capture bugs without a GPU."""

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
    SARIF = "sarif"


class Shown(StrEnum):
    """The weakest candidates of the static pass that are shown."""

    LIKELY = "likely"
    POSSIBLE = "possible"
    WEAK = "weak"


@app.command()
def check(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...", help="FILE.py, FILE.py::function or package.module:function."
        ),
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option(help="An argument: x=float32[8,16]@cuda, n=3; may be repeated."),
    ] = None,
    piecewise: Annotated[
        bool, typer.Option(help="Capture in segments, broken at modules with eager_break.")
    ] = False,
    eager: Annotated[
        list[str] | None,
        typer.Option(help="A function that runs between the segments (implies --piecewise)."),
    ] = None,
    warm_up: Annotated[
        int, typer.Option(min=0, help="Eager runs before the capture, as engines make them.")
    ] = 0,
    stub: Annotated[
        list[str] | None,
        typer.Option(help="A package to replace by a stand-in (triton); may be repeated."),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option(help="A stand-in for an operator: ns::name=FILE.py::function."),
    ] = None,
    stop_at_first: Annotated[
        bool, typer.Option("--stop-at-first", help="Raise at the first violation, as a GPU does.")
    ] = False,
    as_torch: Annotated[
        str | None, typer.Option(help="The torch whose rules and texts are followed: 2.11.")
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Read a tree instead of running it; proves nothing.")
    ] = False,
    certainty: Annotated[
        Shown, typer.Option(help="With --static: the weakest candidates to show.")
    ] = Shown.POSSIBLE,
    form: Annotated[Format, typer.Option("--format", help="How to write the answer.")] = (
        Format.TEXT
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Run code on a CPU under the rules of stream capture; name the lines that would break.

    Exit code 0: nothing was found. 1: there are findings (with --static: candidates are shown).
    """
    from capdoctor.commands import checking
    from capdoctor.errors import UsageError

    if as_json and form is Format.SARIF:
        raise UsageError("--json contradicts --format sarif", "give one of the two")
    written = Format.JSON.value if as_json else form.value
    if static:
        raise typer.Exit(checking.read([Path(t) for t in targets], certainty.value, written))
    options = checking.options(
        arg, piecewise or bool(eager), eager, warm_up, stub, op, stop_at_first, as_torch
    )
    raise typer.Exit(checking.run(targets, options, written))
