"""Runs one row of a table of operations on the virtual device, as it was run on a GPU."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from capdoctor.capture.device import VirtualDevice

DATA = Path(__file__).resolve().parent.parent / "data" / "capture"
Row = dict[str, Any]


def read_table(name: str) -> tuple[Row, list[Row]]:
    """The head (setup and what it was measured on) and the rows of a table."""
    head, *rows = [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]
    return head, rows


def run_row(row: Mapping[str, Any], setup: str, *, as_torch: str) -> Row:
    """Do what the row says inside a capture; give what came of it in the row's own form."""
    with warnings.catch_warnings(), VirtualDevice(as_torch=as_torch) as device:
        warnings.simplefilter("ignore")
        names: dict[str, Any] = {"torch": torch}
        exec(setup, names)  # noqa: S102 - the table is ours
        names.setdefault("cur", torch.cuda.Stream())
        names.setdefault("g", torch.cuda.CUDAGraph())
        try:
            return _captured(row, names, device)
        finally:
            torch.set_default_device(None)
            names.clear()


def _captured(row: Mapping[str, Any], names: dict[str, Any], device: VirtualDevice) -> Row:
    assert _attempt(row.get("before", ""), names) is None
    stream, graph = names["cur"], names["g"]
    if row.get("register"):
        graph.register_generator_state(names["g2"])
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode=row.get("mode", "global"))
        error = _attempt(row["code"], names)
        torch.cuda.set_stream(stream)
        state = device.session.machine.status(stream.cuda_stream)
        end_error = _attempt("g.capture_end()", names)
    torch.set_default_device(None)
    after = _attempt(row.get("after", ""), names)
    return {
        "error": error,
        "capture_after": state.value,
        "end_error": end_error,
        "after_error": after,
    }


def _attempt(code: str, names: dict[str, Any]) -> Row | None:
    try:
        exec(compile(code, "<case>", "exec"), names)  # noqa: S102
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return {
            "type": type(error).__name__,
            "code": getattr(error, "error_code", None),
            "message": str(error),
        }
    return None


def same_error(want: Row | None, got: Row | None) -> bool:
    """Compare type, driver code, and as much of the message as the table holds."""
    if want is None or got is None:
        return want is got
    same = want["type"] == got["type"] and want["code"] == got["code"]
    return same and got["message"].startswith(want["message"])
