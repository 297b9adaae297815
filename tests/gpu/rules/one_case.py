"""One row of a table: what its code does inside a capture, on a GPU or on the virtual device.

A row is a mapping: ``before`` runs eagerly, ``code`` inside the capture, ``thread`` then in another
thread while the capture is on, ``after`` when it has ended. ``mode`` is its error mode; with
``register`` the graph is given the generator ``g2``.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_PATIENCE = 30.0  # seconds that another thread may take


def measure(
    case: Mapping[str, Any], setup: str, status: Callable[[Any], str], names: dict[str, Any]
) -> Row:
    """Run the case; give what came of it.

    Args:
        case: the row's code.
        setup: runs first; defines the names that the rows use.
        status: how the capture of a stream stands: ``none``, ``active`` or ``invalidated``.
        names: gets the names of the case. Whoever clears it destroys graphs and events, which
            crashes some torch after some refused calls: keep it until the answer is safe.
    """
    import torch

    names |= {"torch": torch, "status": status, "mode": case.get("mode", "global")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _measured(case, setup, status, names)
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
            torch.use_deterministic_algorithms(False)


def _measured(
    case: Mapping[str, Any], setup: str, status: Callable[[Any], str], names: dict[str, Any]
) -> Row:
    import torch

    exec(setup, names)  # noqa: S102 - the tables are ours
    names.setdefault("cur", torch.cuda.Stream())  # type: ignore[no-untyped-call]
    names.setdefault("g", torch.cuda.CUDAGraph())
    if not case.get("python_level", True):
        names |= {"rt": cuda_runtime(), "ok": ok, "tk": _triton_kernel(case)}
    before = attempt(case.get("before", ""), names)
    if before is not None:
        return {"before_error": before}
    torch.cuda.synchronize()
    if case.get("register"):
        names["g"].register_generator_state(names["g2"])
    row = _captured(case, status, names)
    torch.set_default_device(None)
    if case.get("after"):
        row["after_error"] = attempt(case["after"], names)
    return row


def _captured(case: Mapping[str, Any], status: Callable[[Any], str], names: dict[str, Any]) -> Row:
    import torch

    stream, graph = names["cur"], names["g"]
    row: Row = {}
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode=case.get("mode", "global"))
        row["error"] = attempt(case.get("code", ""), names)
        if "thread" in case:
            row["thread_error"] = in_another_thread(case["thread"], names)
        torch.cuda.set_stream(stream)
        row["capture_after"] = status(stream)
        row["end_error"] = attempt("g.capture_end()", names)
    return row


def attempt(code: str, names: dict[str, Any]) -> Row | None:
    """Run the code; give what it raised, None if nothing."""
    try:
        exec(compile(code, "<case>", "exec"), names)  # noqa: S102
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return described(error)
    return None


def described(error: BaseException) -> Row:
    """An exception as the tables write it down."""
    return {
        "type": type(error).__name__,
        "code": getattr(error, "error_code", None),
        "message": str(error)[:900],
    }


def in_another_thread(code: str, names: dict[str, Any]) -> Row | None:
    """Run the code in a thread of its own; give what it raised there."""
    answers: list[Row | None] = []
    thread = threading.Thread(
        target=lambda: answers.append(attempt(code, names)), name="other", daemon=True
    )
    thread.start()
    thread.join(_PATIENCE)
    return answers[0] if answers else {"type": "TimeoutError", "code": None, "message": "hangs"}


def ok(answer: int) -> None:
    """Raise what a call of the CUDA runtime answered.

    Raises:
        RuntimeError: it was not 0.
    """
    if answer != 0:
        error = RuntimeError(f"the CUDA runtime answered {answer}")
        error.error_code = answer  # type: ignore[attr-defined]
        raise error


def _triton_kernel(case: Mapping[str, Any]) -> Any:
    if "tk[" not in case.get("code", "") + case.get("thread", ""):
        return None
    from tests.gpu.rules.triton_add import tk

    return tk


def cuda_runtime() -> ctypes.CDLL | None:
    """The CUDA runtime that torch has loaded, None if there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line:
            return ctypes.CDLL(line.split()[-1])
    return None


def status_by_driver(stream: Any) -> str:
    """Ask the driver how the capture of a stream stands."""
    runtime = cuda_runtime()
    if runtime is None:
        return "unknown"
    answer = ctypes.c_int(-1)
    runtime.cudaStreamIsCapturing(ctypes.c_void_p(stream.cuda_stream), ctypes.byref(answer))
    return {0: "none", 1: "active", 2: "invalidated"}.get(answer.value, "unknown")
