"""Prove the tracer on this machine's GPU: ``python tests/gpu/tracer/prove.py OUT``.

Every row of the table and every case runs twice in a process of its own, with and without the
tracer: the results must be the same, the offender named where there is one, and nothing named
where there is none. Without a GPU the virtual device stands in, for a test of this script.

Writes ``OUT/tracer.json``; ends with 1 if anything is wrong.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
DATA = ROOT / "tests" / "data"
sys.path[:0] = [str(ROOT), str(HERE)]

from cases import CASES  # noqa: E402
from one_case import run  # noqa: E402

from capdoctor.capture.tracer.read import TRACER_PACKAGE, read_trace  # noqa: E402

Row = dict[str, Any]
AT_ONCE = 12
ALL_SECONDS = 100
REAL = shutil.which("nvidia-smi") is not None or Path("/dev/nvidiactl").exists()


def jobs(work: Path) -> list[Row]:
    """What is to be run, each with and without the tracer; the slow ones first."""
    lines = (DATA / "capture" / "legality_h200.jsonl").read_text("utf-8").splitlines()
    head, *rows = [json.loads(line) for line in lines]
    names = json.loads((DATA / "tracer" / "names.json").read_text("utf-8"))
    found = [
        {"name": name, "table": False, "named": case.named, "seconds": case.seconds}
        for name, case in CASES.items()
        if REAL or not case.needs_gpu
    ]
    found += [
        {"name": row["case"], "table": True, "code": row["code"], "row": row, "seconds": 40}
        | {"named": names.get(row["case"])}
        for row in rows
        if REAL or row["python_level"]
    ]
    both = [
        {**job, "traced": traced, "setup": head["setup"]}
        for job in found
        for traced in (True, False)
    ]
    for number, job in enumerate(both):
        job["folder"] = str(work / f"{number:03}-{job['name']}")
    return sorted(both, key=lambda job: job["name"] not in ("compiled", "triton_cold", "oom"))


def child(job: Row) -> None:
    """In a process of its own: run the job and write the answer."""
    signal.alarm(job["seconds"])
    folder = Path(job["folder"])
    folder.mkdir(parents=True)
    with (folder / "stderr").open("w") as noise:
        os.dup2(noise.fileno(), 2)
        os.dup2(noise.fileno(), 1)
    faulthandler.enable()
    os.environ["CUDA_LOG_FILE"] = str(folder / "driver.log")
    os.environ["CAPDOCTOR_TRACE_DIR"] = str(folder / "trace")
    try:
        answer = _run_on_gpu(job) if REAL else _run_virtually(job)
    except BaseException:  # noqa: BLE001 - part of what is measured
        answer = {"harness_error": traceback.format_exc()[-3000:]}
    (folder / "answer.json").write_text(json.dumps(answer))


def _run_on_gpu(job: Row) -> Row:
    import torch

    warnings.simplefilter("ignore")
    if job["traced"]:
        from capdoctor_tracer import plugin

        plugin.register()
    from capdoctor_tracer.status import DriverStatus

    torch.zeros(1, device="cuda")
    word = ("none", "active", "invalidated", "unknown")
    source = DriverStatus()
    return run(job, lambda stream: word[source.status(stream)])


def _run_virtually(job: Row) -> Row:
    from contextlib import nullcontext

    from capdoctor.capture.device import VirtualDevice
    from capdoctor.capture.tracer.virtual import tracing

    warnings.simplefilter("ignore")
    with VirtualDevice(as_torch="2.11") as device:
        trace = tracing(Path(job["folder"]) / "trace", device.session)
        with trace if job["traced"] else nullcontext():
            return run(job, lambda stream: device.session.machine.status(stream).value)


def run_all(todo: list[Row]) -> None:
    """Fork a child for each job, a dozen at a time, and wait."""
    running: set[int] = set()
    end = time.monotonic() + ALL_SECONDS
    for job in todo:
        while len(running) >= (AT_ONCE if REAL else 2):
            running.discard(os.waitpid(-1, 0)[0])
        if time.monotonic() > end:
            return
        pid = os.fork()
        if pid == 0:
            try:
                child(job)
            finally:
                os._exit(0)
        running.add(pid)
    while running:
        running.discard(os.waitpid(-1, 0)[0])


def judge(traced: Row, plain: Row) -> Row:
    """What is wrong with one pair of runs, if anything."""
    got, want = _answer(traced), _answer(plain)
    folder = Path(traced["folder"])
    driver = folder / "driver.log"
    trace = read_trace(folder / "trace", driver if driver.exists() else None)
    offences = () if trace is None else trace.offences
    wrong = [f"the tracer failed: {fault[-600:]}" for fault in (trace.faults if trace else ())]
    if trace is None:
        wrong.append("the tracer wrote nothing")
    if any("harness_error" in side or "died" in side for side in (got, want)):
        wrong.append("harness")
    if _without_time(got) != _without_time(want):
        wrong.append("the tracer changed the outcome")
    wrong += _judge_name(traced, want, offences)
    told = [_told(offence) for offence in offences]
    log = driver.read_text("utf-8", "replace")[-1500:] if driver.exists() else ""
    return {
        "name": traced["name"], "wrong": wrong, "offences": told, "traced": got, "plain": want,
        "as_in_table": _as_in_table(traced, want), "driver": log if offences or wrong else "",
        "noise": (folder / "stderr").read_text("utf-8", "replace")[-1500:] if wrong else "",
    }  # fmt: skip


def _judge_name(job: Row, plain: Row, offences: Any) -> list[str]:
    broke = any(plain.get(key) for key in ("error", "end_error", "last_error"))
    if not broke and plain.get("capture_after") != "invalidated":
        return ["something legal was named"] if offences else []
    if not offences:
        return ["nothing was named"]
    first = offences[0]
    wrong = ["more than one offender"] if len(offences) > 1 else []
    names = f"{first.call.operation} {first.call.called_as}"
    if job["named"] is None or not re.search(job["named"], names):
        wrong.append(f"named {names}, not {job['named']}")
    return wrong + (_judge_row(first) if job["table"] else _judge_case(job, first))


def _judge_row(first: Any) -> list[str]:
    place = first.call.place
    return [] if place is not None and place.file == "<case>" else [f"placed at {place}"]


def _judge_case(job: Row, first: Any) -> list[str]:
    case, wrong = CASES[job["name"]], []
    if first.kind != case.kind:
        wrong.append(f"of kind {first.kind}, not {case.kind}")
    if case.thread and first.call.thread != case.thread:
        wrong.append(f"in thread {first.call.thread}, not {case.thread}")
    calls = (first.earlier, first.call) if len(case.functions) > 1 else (first.call,)
    for function, call in zip(case.functions, calls, strict=False):
        place = call.place if call else None
        if place is None or place.function != function:
            wrong.append(f"placed at {place}, not in {function}")
    return wrong


def _told(offence: Any) -> Row:
    place, earlier = offence.call.place, offence.earlier
    return {
        "kind": str(offence.kind), "operation": offence.call.operation,
        "called_as": offence.call.called_as,
        "place": [place.file, place.line, place.function] if place else None,
        "source": offence.call.source, "stream": offence.call.stream,
        "capture": offence.call.capture, "number": offence.call.number,
        "thread": offence.call.thread, "thread_id": offence.call.thread_id,
        "earlier": earlier and [earlier.operation, str(earlier.place), earlier.capture],
        "error": offence.error and [offence.error.type, offence.error.code],
        "end_error": offence.end_error and offence.end_error.code, "driver": list(offence.driver),
    }  # fmt: skip


def _answer(job: Row) -> Row:
    path = Path(job["folder"]) / "answer.json"
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return {"died": True}


def _without_time(answer: Row) -> Row:
    kept = {key: value for key, value in answer.items() if key != "seconds"}
    return json.loads(re.sub(r"GPU \d+ has a total capacity.*?(?=\")", "", json.dumps(kept)))  # type: ignore[no-any-return]


def _as_in_table(job: Row, got: Row) -> bool | None:
    if not job["table"]:
        return None
    want = job["row"]
    ends = [(side.get("end_error") or {}).get("code") for side in (want, got)]
    errors = [(side.get("error") or {}).get("type") for side in (want, got)]
    after = want["capture_after"] == got.get("capture_after")
    return ends[0] == ends[1] and errors[0] == errors[1] and after


def main() -> int:
    """Run everything and say what is wrong."""
    import torch
    import torch.cuda.graphs

    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="capdoctor-tracer-") as folder:
        work = Path(folder)
        shutil.copytree(TRACER_PACKAGE, work / "capdoctor_tracer")
        sys.path.insert(0, folder)
        todo = jobs(work / "runs")
        run_all(todo)
        plain = {(job["name"], job["table"]): job for job in todo if not job["traced"]}
        pairs = [(job, plain[job["name"], job["table"]]) for job in todo if job["traced"]]
        rows = [judge(*pair) for pair in pairs]
    wrong = [row for row in rows if row["wrong"]]
    head = {"torch": torch.__version__, "python": sys.version, "real": REAL}
    head |= {"seconds": time.monotonic() - began, "cases": len(rows), "wrong": len(wrong)}
    cost = next(row for row in rows if row["name"] == "many_segments")
    head["cost"] = [cost[side].get("seconds") for side in ("plain", "traced")]
    (out / "tracer.json").write_text(json.dumps({**head, "rows": rows}, indent=1))
    print(json.dumps(head))
    for row in wrong:
        print(
            json.dumps({k: row[k] for k in ("name", "wrong", "offences", "traced", "plain")})[:1500]
        )
        print(row["noise"][-600:], row["driver"][-400:])
    different = [row["name"] for row in rows if row["as_in_table"] is False]
    print("measured otherwise than in the table:", different)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
