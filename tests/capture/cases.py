"""Runs one row of a table on the virtual device, by the code that ran it on a GPU."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capdoctor.capture.device import VirtualDevice
from tests.gpu.rules import one_case

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
        machine = device.session.machine
        names: dict[str, Any] = {}
        try:
            got = one_case.measure(
                row, setup, lambda stream: machine.status(stream.cuda_stream).value, names
            )
        finally:
            names.clear()
    assert "before_error" not in got, got
    return got


def same_error(want: Row | None, got: Row | None) -> bool:
    """Compare type, driver code, and as much of the message as the table holds."""
    if want is None or got is None:
        return want is got
    same = want["type"] == got["type"] and want["code"] == got["code"]
    return same and got["message"].startswith(want["message"])
