"""Measure the rules of stream capture on a GPU, under the torch at hand.

    python tests/gpu/rules/measure.py OUT [--parts rules,operations] [--seconds 85] [--alone]

``OUT/rules.jsonl`` gets the first table in all three error modes and the rows of ``cases.toml``,
``OUT/operations.jsonl`` the second table, ``OUT/summary.json`` what differs from what was measured
before, what was not measured and how long it took.

A row has a fresh process of its own (``alone``) if it was never measured, or if it depends on what
a process did before. The others follow each other in one process, and each one that does not agree
with what a fresh process gave before, with whatever torch, is measured again alone. ``--alone``:
all rows are. Needs torch and this repository, nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.gpu.rules import known, one_case, processes  # noqa: E402 - after the path is set

Row = dict[str, Any]
MODES = ("global", "thread_local", "relaxed")
CASES = Path(__file__).with_name("cases.toml")
_INPUTS = ("case", "before", "code", "thread", "after", "mode", "register", "python_level", "since")
_TOGETHER = 40  # rows that follow each other in one process
_LOG_LINES = 8
NOISE = ("cuCtxGetDevice", "No CUDA context is current")  # torch's own probing


def rule_rows() -> tuple[list[Row], dict[str, str]]:
    """All rows of the part ``rules``, and the set-up code by the name that each row carries."""
    head, *first = known.table("legality_h200.jsonl")
    text = tomllib.loads(CASES.read_text("utf-8"))
    setups = {"first": head["setup"], "cases": text["setup"]}
    rows = [inputs(row) | {"setup": "first"} for row in first]
    own = [row | {"setup": "cases"} for row in text["in_each_mode"]]
    spread = [row | {"mode": mode} for row in rows + own for mode in MODES]
    spread.sort(key=lambda row: "tk[" not in row.get("code", "") + row.get("thread", ""))  # slow
    return spread + [row | {"setup": "cases"} for row in text["once"]], setups


def operation_rows() -> tuple[list[Row], dict[str, str]]:
    """All rows of the part ``operations``."""
    head, *rows = known.table("more_operations.jsonl")
    return [inputs(row) | {"setup": "second"} for row in rows], {"second": head["setup"]}


def inputs(row: Row) -> Row:
    return {name: row[name] for name in _INPUTS if name in row}


def on_the_gpu(logs: Path, setups: dict[str, str]) -> Callable[[Row], Row]:
    """What measures one row in a child, which may already have run others."""
    names: dict[str, Any] = {}

    def work(row: Row) -> Row:
        names.clear()
        log = logs / f"driver-{os.getpid()}.log"
        os.environ["CUDA_LOG_FILE"] = str(log)  # read when CUDA starts in this process
        before = log.stat().st_size if log.exists() else 0
        answer = one_case.measure(row, setups[row["setup"]], one_case.status_by_driver, names)
        return answer | driver_log(log, before)

    return work


def driver_log(log: Path, before: int) -> Row:
    """What the driver wrote down meanwhile, and in which thread: ``own`` or ``other``."""
    if not log.exists():
        return {}
    own = f"[{threading.get_ident()}]"
    lines = log.read_bytes()[before:].decode("utf-8", "replace").splitlines()
    kept = [
        ["own" if own in line else "other", line.rpartition("]")[2].strip()[:200]]
        for line in lines
        if not any(noise in line for noise in NOISE)
    ]
    return {"driver": kept[:_LOG_LINES]} if kept else {}


def on_the_virtual_device(setups: dict[str, str]) -> Callable[[Row], Row]:
    """The same without a GPU, to try the machinery."""
    from capdoctor.capture.device import VirtualDevice

    def work(row: Row) -> Row:
        if not row.get("python_level", True):
            return {"skipped": "not at the level of Python"}
        with VirtualDevice() as device:
            status = device.session.machine.status
            names: dict[str, Any] = {}
            try:
                return one_case.measure(
                    row,
                    setups[row["setup"]],
                    lambda stream: status(stream.cuda_stream).value,
                    names,
                )
            finally:
                names.clear()

    return work


def measure_all(
    work: Callable[[Row], Row], rows: list[Row], before: dict[known.Key, Row], limit: float
) -> Iterator[Row]:
    """Rows in company first, then the others and those that did not agree, alone."""
    deadline = time.monotonic() + limit
    company = [row for row in rows if row.get("python_level", True) and known.key(row) in before]
    again = [row for row in rows if row not in company]
    batches = [company[i : i + _TOGETHER] for i in range(0, len(company), _TOGETHER)]
    for row in processes.run_all(
        batches, work, processes=_at_once(), deadline=deadline, stays=lambda _answer: True
    ):
        if "not_measured" in row or row.get("alone") or not _doubtful(row, before):
            yield row
        else:
            asked = inputs(row) | {"setup": row["setup"]}
            again.append(asked | {"in_company": known.essence(row)})
    yield from processes.run_all(
        [[row] for row in again], work, processes=_at_once(), deadline=deadline
    )


def _doubtful(row: Row, before: dict[known.Key, Row]) -> bool:
    return not known.usable(row) or known.differs(row, before[known.key(row)])


def _at_once() -> int:
    return max(2, min(12, (os.cpu_count() or 2) - 2))


def write(part: str, rows: Iterable[Row], head: Row, out: Path) -> Row:
    """Write the rows down as they come; sum up."""
    started = time.monotonic()
    before = known.known(part)
    summary: Row = {"rows": 0, "differ": [], "not_measured": [], "faults": []}
    with (out / f"{part}.jsonl").open("w") as file:
        file.write(json.dumps(head) + "\n")
        for row in rows:
            file.write(json.dumps(row) + "\n")
            file.flush()
            _count(summary, row, before.get(known.key(row)))
    summary["seconds"] = round(time.monotonic() - started, 1)
    return summary


def _count(summary: Row, row: Row, before: Row | None) -> None:
    name = f"{row['case']} ({row.get('mode', 'global')})"
    summary["rows"] += 1
    if "not_measured" in row:
        summary["not_measured"].append(name)
    elif any(k in row for k in ("harness_error", "before_error", "died")):
        fault = {k: row[k] for k in ("harness_error", "before_error", "died") if k in row}
        summary["faults"].append([name, fault])
    elif "skipped" not in row and known.differs(row, before):
        summary["differ"].append([name, known.essence(row)])


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", default="rules,operations")
    parser.add_argument("--seconds", type=float, default=85.0, help="for each part")
    parser.add_argument("--alone", action="store_true", help="a fresh process for every row")
    parser.add_argument("--virtual", action="store_true", help="no GPU: try the machinery")
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    return parser.parse_args()


def main() -> int:
    """Measure each part; one that fails does not stop the other."""
    chosen = options()
    chosen.out.mkdir(parents=True, exist_ok=True)
    import torch

    head = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
    summary: Row = dict(head)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as logs:
        for part in chosen.parts.split(","):
            try:
                summary[part] = _part(part, chosen, head, Path(logs))
            except Exception as error:  # noqa: BLE001 - the boundary between two parts
                summary[part] = {"failed": f"{type(error).__name__}: {error}"}
            (chosen.out / "summary.json").write_text(json.dumps(summary, indent=1))
            _tell(part, summary[part])
    return 0


def _part(part: str, chosen: argparse.Namespace, head: Row, logs: Path) -> Row:
    rows, setups = rule_rows() if part == "rules" else operation_rows()
    rows = [row for row in rows if chosen.only in row["case"]]
    work = on_the_virtual_device(setups) if chosen.virtual else on_the_gpu(logs, setups)
    before = {} if chosen.alone else known.known(part)
    answers = measure_all(work, rows, before, chosen.seconds)
    return write(part, answers, head | {"setups": setups}, chosen.out)


def _tell(part: str, result: Row) -> None:
    print(f"{part}: {result.get('rows')} rows in {result.get('seconds')} s", flush=True)
    for name in ("failed", "faults", "differ", "not_measured"):
        if result.get(name):
            print(f"  {name}: {json.dumps(result[name])[:1500]}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
