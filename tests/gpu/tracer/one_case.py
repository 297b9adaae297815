"""Runs one row of the table, or one case, in this process and says what came of it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from cases import CASES

Row = dict[str, Any]


def run(job: Row, device: Any) -> Row:
    """Do the job; ``device`` answers the status of a stream."""
    import torch

    names: dict[str, Any] = {"torch": torch}
    exec(job["setup"], names)  # noqa: S102 - the table is ours
    names.setdefault("cur", torch.cuda.Stream())
    if job["name"] == "triton_cold":
        names["tk"] = _triton_kernel(job["folder"])
    began = time.perf_counter()
    answer = _row(job, names, device) if job["table"] else _case(job, names)
    return answer | {"seconds": time.perf_counter() - began}


def _row(job: Row, names: dict[str, Any], device: Any) -> Row:
    """As the table was measured, but the error is on its way out when the capture ends."""
    import torch

    graph, stream = torch.cuda.CUDAGraph(), names["cur"]
    after = end = error = None
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                exec(compile(job["code"], "<case>", "exec"), names)  # noqa: S102
            finally:
                torch.cuda.set_stream(stream)
                after = device(stream.cuda_stream)
                error = sys.exc_info()[1]
                graph.capture_end()
    except BaseException as raised:  # noqa: BLE001 - whatever it raises is the measurement
        end = raised if raised is not error else None
    return {"error": error_of(error), "capture_after": after, "end_error": error_of(end)}


def _case(job: Row, names: dict[str, Any]) -> Row:
    try:
        result = CASES[job["name"]].run(names)
    except Exception as error:  # noqa: BLE001 - part of what is measured
        first = error
        while first.__context__ is not None:
            first = first.__context__
        return {"error": error_of(first), "last_error": error_of(error)}
    return {"error": None, "result": repr(result)}


def error_of(error: BaseException | None) -> Row | None:
    """Type, code and the first line."""
    if error is None:
        return None
    code = getattr(error, "error_code", None)
    text = str(error).partition("\n")[0]
    return {"type": type(error).__name__, "code": code, "message": text}


def _triton_kernel(folder: str) -> Any:
    """The kernel must stand in a file: Triton reads its source."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / "proof_kernel.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef tk(x):\n"
        "    i = tl.arange(0, 8)\n    tl.store(x + i, tl.load(x + i) + 1)\n"
    )
    os.environ["TRITON_CACHE_DIR"] = folder
    sys.path.insert(0, folder)
    from proof_kernel import tk

    return tk
