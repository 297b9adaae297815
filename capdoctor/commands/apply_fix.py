"""``capdoctor apply-fix``: put a bundled fix into an installed package or a checkout."""

from __future__ import annotations

from typing import Annotated

import typer

from capdoctor.commands import new_app

app = new_app()

_DO, _HOW = "What to do", "How"


@app.command()
def apply_fix(
    fixes: Annotated[
        list[str] | None, typer.Argument(metavar="[FIX...]", help="Default: every bundled fix.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PYTHON|DIR",
            help="A Python, a checkout, a site-packages or package folder; may be repeated.",
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the bundled fixes.", rich_help_panel=_DO)
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Report only.", rich_help_panel=_DO)
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the change, write nothing.", rich_help_panel=_DO)
    ] = False,
    revert: Annotated[
        bool, typer.Option("--revert", help="Give the old bytes back.", rich_help_panel=_DO)
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run the fix's scenario after.", rich_help_panel=_HOW)
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Even if an engine is running.", rich_help_panel=_HOW)
    ] = False,
    allow_dirty: Annotated[
        bool,
        typer.Option("--allow-dirty", help="Even with local changes.", rich_help_panel=_HOW),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Put a bundled fix into an installed package or a checkout.

    Exit code 0: nothing is left to do. 1: something is vulnerable (with --check or --diff), or
    did not pass --verify.
    """
    from capdoctor.commands import fixing

    if list_them:
        raise typer.Exit(fixing.show_fixes(as_json=as_json))
    deed = fixing.deed(check=check, diff=diff, revert=revert, verify=verify)
    results = fixing.work(deed, fixes or (), target or (), live=live, allow_dirty=allow_dirty)
    if verify:
        results = fixing.verified(results)
    raise typer.Exit(fixing.answer(results, deed, as_json=as_json))
