"""Runs code on the virtual device, with and without the tracer."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from capdoctor.capture.device import VirtualDevice
from capdoctor.capture.tracer import read_trace
from capdoctor.capture.tracer.virtual import tracing
from capdoctor.model import CaptureTrace
from tests.capture.cases import read_table

SETUP: str = read_table("legality_h200.jsonl")[0]["setup"]
Names = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """What came of it: the result or the chain of errors, and the trace of a traced run."""

    result: str
    errors: tuple[str, ...]
    trace: CaptureTrace | None


def run(function: Callable[[Names], object], folder: Path | None, *, as_torch: str = "2.11") -> Ran:
    """Call ``function`` with the names of the table's set-up code; trace into ``folder``."""
    with warnings.catch_warnings(), VirtualDevice(as_torch=as_torch) as device:
        warnings.simplefilter("ignore")
        names: Names = {"torch": torch}
        exec(SETUP, names)  # noqa: S102 - the table is ours
        names["cur"] = torch.cuda.Stream()
        block = tracing(folder, device.session) if folder else contextlib.nullcontext()
        result, error = "", None
        with block:
            try:
                result = repr(function(names))
            except Exception as raised:  # noqa: BLE001 - whatever it raises is the answer
                error = raised
        torch.set_default_device(None)
        names.clear()
    return Ran(result, _chain(error), read_trace(folder) if folder else None)


def _chain(error: BaseException | None) -> tuple[str, ...]:
    found = []
    while error is not None:
        code = getattr(error, "error_code", None)
        found.append(f"{type(error).__name__} {code} {error}")
        error = error.__cause__ or error.__context__
    return tuple(found)


def journal_lines(folder: Path) -> list[dict[str, Any]]:
    """Every line that was written."""
    files = sorted(folder.glob("trace-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
