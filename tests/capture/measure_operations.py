"""Measure on a real GPU what each operation of a table does inside a capture.

    python measure_operations.py TABLE.jsonl OUT.jsonl

The table is ``tests/data/capture/more_operations.jsonl`` or one of its form: a head with the set-up
code, then rows as ``tests/gpu/rules/one_case.py`` reads them. Every row runs in a process of its
own, forked after torch was imported and before CUDA was touched: a broken capture cannot spoil the
next. ``tests/gpu/rules/measure.py`` does the same for all tables at once, and in all error modes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.gpu.rules import measure  # noqa: E402 - after the path is set

_LIMIT = 600.0  # seconds for the whole table


def main() -> None:
    """Measure the whole table."""
    import torch

    head, *cases = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    rows = [measure.inputs(case) | {"setup": "table"} for case in cases]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as logs:
        work = measure.on_the_gpu(Path(logs), {"table": head["setup"]})
        answers = list(measure.measure_all(work, rows, {}, _LIMIT))
    order = {row["case"]: index for index, row in enumerate(rows)}
    answers.sort(key=lambda row: order[row["case"]])
    told = {"torch": torch.__version__, "hip": torch.version.hip, "setup": head["setup"]}
    with Path(sys.argv[2]).open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in [told, *answers])


if __name__ == "__main__":
    main()
