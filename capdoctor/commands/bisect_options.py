"""The options of ``capdoctor bisect``, one alias each: their help and their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_WHAT, _HOW, _ENGINE = "What to search", "How", "Engine"

Repo = Annotated[
    str | None,
    typer.Option(metavar="vllm|aiter|DIR", help="The repository.", rich_help_panel=_WHAT),
]
Good = Annotated[
    str | None,
    typer.Option(metavar="REV", help="Does not crash: a tag, date, version or commit."),
]
Bad = Annotated[str | None, typer.Option(metavar="REV", help="Crashes.")]
Reference = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN|LOG",
        help="The crash to look for; default: the first reproduction at the bad end.",
        rich_help_panel=_WHAT,
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Option(help="Only commits that touch this path matter.", rich_help_panel=_WHAT),
]
FindFix = Annotated[
    bool, typer.Option("--find-fix", help="Find what ended the crash.", rich_help_panel=_WHAT)
]
FirstParent = Annotated[
    bool,
    typer.Option(
        "--first-parent/--no-first-parent",
        help="Stay on the main line; --no-first-parent goes into a guilty merge.",
        rich_help_panel=_WHAT,
    ),
]
Probe = Annotated[
    str,
    typer.Option(
        metavar="engine|scenario:NAME|fix:ID|CMD",
        help="What judges a commit. CMD runs in the commit's worktree.",
        rich_help_panel=_HOW,
    ),
]
AnyFailure = Annotated[
    bool,
    typer.Option("--any-failure", help="CMD: every failure is bad.", rich_help_panel=_HOW),
]
RevertCheck = Annotated[
    bool,
    typer.Option(
        "--revert-check", help="Also revert the culprit at the bad end.", rich_help_panel=_HOW
    ),
]
Flaky = Annotated[
    bool, typer.Option("--flaky", help="It does not crash every time.", rich_help_panel=_HOW)
]
Workers = Annotated[
    int, typer.Option(min=1, max=64, help="Commits tested at once.", rich_help_panel=_HOW)
]
Gpus = Annotated[
    list[str] | None,
    typer.Option(help="One set of devices a worker, e.g. 0,1.", rich_help_panel=_HOW),
]
Budget = Annotated[float | None, typer.Option(min=0.1, metavar="MINUTES", rich_help_panel=_HOW)]
RunTimeout = Annotated[
    float | None,
    typer.Option("--timeout", min=1, help="Seconds for one run.", rich_help_panel=_HOW),
]
WorkDir = Annotated[Path | None, typer.Option(help="Where the journal lies.", rich_help_panel=_HOW)]
Shrink = Annotated[
    bool,
    typer.Option(
        "--shrink/--no-shrink", help="Fewest layers of every kind.", rich_help_panel=_ENGINE
    ),
]
WorkDirArgument = Annotated[
    Path | None, typer.Argument(metavar="[WORK_DIR]", help="Default: the latest bisection.")
]
Commit = Annotated[
    str | None, typer.Option("--commit", metavar="SHA", help="Default: the last run.")
]
RequiredModel = Annotated[str, typer.Option("--model", help="What the engine starts.")]
