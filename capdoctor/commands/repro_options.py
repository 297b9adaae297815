"""The options of ``capdoctor repro``, one alias each: their help and their bounds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class EngineName(StrEnum):
    """The engines that can be started."""

    VLLM = "vllm"
    EMBEDDED = "embedded"


class Device(StrEnum):
    """Where the embedded engine runs."""

    CPU = "cpu"
    CUDA = "cuda"


_ENGINE, _RUN, _ANSWER = "Engine", "Run", "Answer"


Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGS...]", help="After --: as `vllm serve` takes them."),
]
Model = Annotated[
    str | None,
    typer.Option(help="A folder with config.json, a hub id, demo/NAME or FILE.py."),
]
Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Instead of a model: exercise the real sources of --source DIR that a known crash "
        "lives in (sparse-mla, fold-indptr).",
    ),
]
Engine = Annotated[
    EngineName | None, typer.Option(help="Default: by the model.", rich_help_panel=_ENGINE)
]
Python = Annotated[
    Path | None,
    typer.Option(help="The Python that has the engine.", rich_help_panel=_ENGINE),
]
Source = Annotated[
    Path | None,
    typer.Option(
        help="vLLM: run this tree's Python files over the installed package. "
        "Embedded engine: take FILE.py from here.",
        rich_help_panel=_ENGINE,
    ),
]
DeviceName = Annotated[
    Device,
    typer.Option(help="Embedded engine: virtual device or a GPU.", rich_help_panel=_ENGINE),
]
AsTorch = Annotated[
    str | None,
    typer.Option(
        help="Embedded engine: the torch whose rules and texts the virtual device follows.",
        metavar="X.Y",
        rich_help_panel=_ENGINE,
    ),
]
TensorParallelSize = Annotated[
    int | None,
    typer.Option("--tensor-parallel-size", "-tp", min=1, rich_help_panel=_ENGINE),
]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="An engine argument, JSON value.", rich_help_panel=_ENGINE
    ),
]
Shrink = Annotated[
    bool,
    typer.Option(
        "--shrink/--no-shrink",
        help="Fewest layers that keep every kind of layer.",
        rich_help_panel=_ENGINE,
    ),
]
StopAfter = Annotated[
    str | None,
    typer.Option(metavar="STAGE", help="End once this stage has passed.", rich_help_panel=_RUN),
]
Timeout = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds for the whole run.", rich_help_panel=_RUN),
]
HangAfter = Annotated[
    float,
    typer.Option(
        min=1, help="Seconds without output and CPU time in any process.", rich_help_panel=_RUN
    ),
]
Repeat = Annotated[int, typer.Option(min=1, help="Run so many times.", rich_help_panel=_RUN)]
Matrix = Annotated[
    bool,
    typer.Option(
        "--matrix", help="Also run with each graph mode, and eager.", rich_help_panel=_RUN
    ),
]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace",
        help="Load the capture tracer into the engine: name the first operation that broke the "
        "capture.",
        rich_help_panel=_RUN,
    ),
]
Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where the run's files go.", rich_help_panel=_ANSWER),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout.", rich_help_panel=_ANSWER)
]
ListDemos = Annotated[
    bool,
    typer.Option("--list-demos", help="List the bundled demos.", rich_help_panel=_ANSWER),
]
