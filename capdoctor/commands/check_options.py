"""The options of ``capdoctor check``, one alias each: their help and their bounds."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

_RUN, _READ, _ANSWER = "Run", "Read instead", "Answer"


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


Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET...", help="FILE.py, FILE.py::function or package.module:function."
    ),
]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An argument: x=float32[8,16]@cuda, n=3; may be repeated.",
        rich_help_panel=_RUN,
    ),
]
Piecewise = Annotated[
    bool,
    typer.Option(
        "--piecewise",
        help="Capture in segments, broken at modules with eager_break = True.",
        rich_help_panel=_RUN,
    ),
]
Eager = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A function that runs between the segments (implies --piecewise).",
        rich_help_panel=_RUN,
    ),
]
WarmUp = Annotated[
    int,
    typer.Option(
        min=0, help="Eager runs before the capture, as engines make them.", rich_help_panel=_RUN
    ),
]
Stub = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PACKAGE",
        help="A package to replace by a stand-in (triton); may be repeated.",
        rich_help_panel=_RUN,
    ),
]
Op = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NS::NAME=FILE.py::FUNCTION",
        help="A Python stand-in for an operator; may be repeated.",
        rich_help_panel=_RUN,
    ),
]
StopAtFirst = Annotated[
    bool,
    typer.Option(
        "--stop-at-first", help="Raise at the first violation, as a GPU does.", rich_help_panel=_RUN
    ),
]
AsTorch = Annotated[
    str | None,
    typer.Option(
        metavar="X.Y", help="The torch whose rules and texts are followed.", rich_help_panel=_RUN
    ),
]
Static = Annotated[
    bool,
    typer.Option(
        "--static",
        help="Read files or folders instead of running them; proves nothing.",
        rich_help_panel=_READ,
    ),
]
Certainty = Annotated[
    Shown, typer.Option(help="The weakest candidates to show.", rich_help_panel=_READ)
]
Form = Annotated[
    Format, typer.Option("--format", help="How to write the answer.", rich_help_panel=_ANSWER)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Short for --format json.", rich_help_panel=_ANSWER)
]
