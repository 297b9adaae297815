"""Measure on a real GPU what each operation of a table does inside a capture.

    python measure_operations.py TABLE.jsonl OUT.jsonl

The table is ``tests/data/capture/more_operations.jsonl`` or one of its form: a head, then rows with
``before``, ``code``, ``after``, ``mode`` and ``register``. Every row runs in a process of its own,
forked after torch was imported and before CUDA was touched: a broken capture cannot spoil the next.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SETUP = """
x=torch.zeros(8,device='cuda'); i=torch.arange(8,device='cuda')
m=x>-1; s=torch.zeros((),device='cuda')
c=torch.zeros(8); p=torch.zeros(8).pin_memory(); y=torch.eye(16,device='cuda')
S2=torch.cuda.Stream(); eo=torch.cuda.Event(); eo.record()
a=torch.cuda.Event(enable_timing=True); a.record()
b=torch.cuda.Event(enable_timing=True); b.record()
e=torch.cuda.Event(); g2=torch.Generator(device='cuda')
g=torch.cuda.CUDAGraph(); cur=torch.cuda.Stream()
torch.cuda.synchronize()
"""


def error_of(error: BaseException | None) -> dict[str, object] | None:
    """Write an exception down as a row of the table does."""
    if error is None:
        return None
    return {
        "type": type(error).__name__,
        "code": getattr(error, "error_code", None),
        "message": str(error)[:900],
    }


def attempt(code: str, names: dict[str, object]) -> BaseException | None:
    """Run the code; give back what it raised."""
    try:
        exec(compile(code, "<case>", "exec"), names)  # noqa: S102 - the table is ours
    except BaseException as error:  # noqa: BLE001 - whatever it raises is the measurement
        return error
    return None


def status_of(stream: object) -> str:
    """Ask the driver how the capture of the stream stands."""
    import ctypes

    runtime = None
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line:
            runtime = ctypes.CDLL(line.split()[-1])
            break
    if runtime is None:
        return "unknown"
    answer = ctypes.c_int(-1)
    handle = ctypes.c_void_p(stream.cuda_stream)  # type: ignore[attr-defined]
    runtime.cudaStreamIsCapturing(handle, ctypes.byref(answer))
    return {0: "none", 1: "active", 2: "invalidated"}.get(answer.value, "unknown")


def measure(case: dict[str, object]) -> dict[str, object]:
    """Run one case: before, inside a capture, after."""
    import torch

    warnings.simplefilter("ignore")
    names: dict[str, object] = {"torch": torch}
    row: dict[str, object] = dict(case)
    exec(SETUP, names)  # noqa: S102
    stream, graph = names["cur"], names["g"]
    before = attempt(str(case.get("before", "")), names)
    if before is not None:
        return row | {"before_error": error_of(before)}
    torch.cuda.synchronize()
    if case.get("register"):
        graph.register_generator_state(names["g2"])  # type: ignore[attr-defined]
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode=case.get("mode", "global"))  # type: ignore[attr-defined]
        error = attempt(str(case["code"]), names)
        row["error"] = error_of(error)
        torch.cuda.set_stream(stream)
        row["capture_after"] = status_of(stream)
        row["end_error"] = error_of(attempt("g.capture_end()", names))
    torch.set_default_device(None)
    if case.get("after"):
        row["after_error"] = error_of(attempt(str(case["after"]), names))
    return row


def in_a_process(case: dict[str, object]) -> dict[str, object]:
    """Fork, measure there, read the row from a file; a death is a result too."""
    handle, answer = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.dup2(null, 1)
        try:
            row = measure(case)
        except BaseException as error:  # noqa: BLE001 - also a row
            row = dict(case) | {"harness_error": error_of(error)}
        Path(answer).write_text(json.dumps(row))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    text = Path(answer).read_text()
    Path(answer).unlink()
    return json.loads(text) if text else dict(case) | {"died": status}  # type: ignore[no-any-return]


def main() -> None:
    """Measure the whole table."""
    import torch

    _head, *cases = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    with ThreadPoolExecutor(14) as pool:
        rows = list(pool.map(in_a_process, cases))
    head = {"torch": torch.__version__, "hip": torch.version.hip, "setup": SETUP}
    with Path(sys.argv[2]).open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in [head, *rows])


if __name__ == "__main__":
    main()
