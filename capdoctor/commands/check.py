"""``capdoctor check``: find stream-capture bugs without a GPU."""

from __future__ import annotations

from pathlib import Path

import typer

from capdoctor.commands import check_options as opt
from capdoctor.commands import new_app

app = new_app()


@app.command()
def check(
    targets: opt.Targets,
    arg: opt.Arg = None,
    piecewise: opt.Piecewise = False,
    eager: opt.Eager = None,
    warm_up: opt.WarmUp = 0,
    stub: opt.Stub = None,
    op: opt.Op = None,
    stop_at_first: opt.StopAtFirst = False,
    as_torch: opt.AsTorch = None,
    static: opt.Static = False,
    certainty: opt.Certainty = opt.Shown.POSSIBLE,
    form: opt.Form = opt.Format.TEXT,
    as_json: opt.AsJson = False,
) -> None:
    """Run code on a CPU under the rules of stream capture; name the lines that would break.

    Exit code 0: nothing was found. 1: there are findings (with --static: candidates are shown).
    """
    from capdoctor.commands import checking
    from capdoctor.errors import UsageError

    if as_json and form is opt.Format.SARIF:
        raise UsageError("--json contradicts --format sarif", "give one of the two")
    written = opt.Format.JSON.value if as_json else form.value
    if static:
        raise typer.Exit(checking.read([Path(t) for t in targets], certainty.value, written))
    options = checking.options(
        arg, piecewise or bool(eager), eager, warm_up, stub, op, stop_at_first, as_torch
    )
    raise typer.Exit(checking.run(targets, options, written))
