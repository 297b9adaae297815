"""An engine process that is none: it prints what vLLM prints, and misbehaves as it is told.

Run as a script: ``python fake_engine.py ACTION...``; the actions are done in order.

    stage NAME      print the line that leads into a stage
    say TEXT        print a line on stdout;  err TEXT: on stderr
    flood out|err|both MIB
    bar TOTAL       a capture bar, written over with carriage returns
    half TEXT       text without a newline
    children        one of each: plain, double fork, setsid, ignoring signals, cleared environment
    segment         a shared-memory segment with a resource tracker; orphan: one without
    files           files and folders in TMPDIR
    deaf            ignore SIGTERM, SIGINT and SIGHUP
    sleep SECONDS;  hang: the same for ever;  spin: for ever, and busy
    nag             print the same complaint for ever, half a second apart
    fail            a traceback and exit 1;  exit CODE;  die SIGNAL
    report STEP     write the runner's report (its path is the variable FAKE_REPORT)
    fork-late       the child that it leaves behind prints a traceback after it is gone
"""

from __future__ import annotations

import inspect
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

LINES = {
    "config": "INFO 11-29 15:41:39 [model.py:733] Resolved architecture: LlamaForCausalLM",
    "device_init": "INFO 11-29 15:41:43 [core.py:133] Initializing a V1 LLM engine (v0.33.0) with"
    " config: model='x'",
    "weights": "INFO 11-29 15:41:50 [gpu_model_runner.py:68] Starting to load model models/x...",
    "profile_run": "INFO 11-29 15:41:52 [gpu_model_runner.py:90] Model loading took 0.01 GiB"
    " memory and 0.1 seconds",
    "profile_cudagraph_memory": "INFO 11-29 15:41:55 [gpu_model_runner.py:95] Profiling CUDA graph"
    " memory: PIECEWISE=2 (largest=8), FULL=2",
    "kv_cache": "INFO 11-29 15:42:18 [gpu_worker.py:298] Available KV cache memory: 3.2 GiB",
    "serving": "INFO 11-29 15:42:20 [core.py:402] init engine (profile, create kv cache, warmup"
    " model) took 29.55 s",
}
HELD: list[shared_memory.SharedMemory] = []
_ALL_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def stage(name: str) -> None:
    out(f"(EngineCore pid={os.getpid()}) {LINES[name]}\n")


def flood(where: str, mebibytes: str) -> None:
    line = "x" * 1023 + "\n"
    for number in range(int(mebibytes) * 1024):
        if where in ("out", "both"):
            sys.stdout.write(f"{number:08d} out {line}")
        if where in ("err", "both"):
            sys.stderr.write(f"{number:08d} err {line}")


def bar(total: str) -> None:
    for done in range(int(total) + 1):
        percent = 100 * done // int(total)
        sys.stderr.write(
            f"\rCapturing CUDA graphs (PIECEWISE): {percent:3d}%|##  | {done}/{total} "
        )
        sys.stderr.flush()
        time.sleep(0.05)
    sys.stderr.write("\n")


def children() -> None:
    hang = "import time; time.sleep(600)"
    deaf = "import signal, time\n"
    deaf += "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]\ntime.sleep(600)"
    double = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\n"
    double += "if os.fork(): os._exit(0)\ntime.sleep(600)"
    subprocess.Popen([sys.executable, "-c", hang])
    subprocess.Popen([sys.executable, "-c", double])
    subprocess.Popen([sys.executable, "-c", hang], start_new_session=True)
    subprocess.Popen([sys.executable, "-c", deaf])
    subprocess.Popen([sys.executable, "-c", double], env={}, start_new_session=True)
    time.sleep(0.3)


def segment() -> None:
    HELD.append(shared_memory.SharedMemory(name=segment_name(), create=True, size=1024))


def segment_name() -> str:
    """Give a name as Python does, with a part by which a test knows its own."""
    return f"psm_{os.environ.get('FAKE_SEGMENTS', '')}{secrets.token_hex(4)}"


def orphan() -> None:
    code = "from multiprocessing import resource_tracker, shared_memory\n"
    code += "resource_tracker.register = lambda *a: None\n"
    code += f"shared_memory.SharedMemory({segment_name()!r}, create=True, size=64)\n"
    code += "import os; os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def files() -> None:
    folder = Path(os.environ["TMPDIR"])
    (folder / "deep/deeper").mkdir(parents=True)
    (folder / "deep/deeper/file").write_text("x")
    (folder / "4a0edba9-6689-4457-b941-a9661106e304").touch()


def deaf() -> None:
    for number in _ALL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def nag() -> None:
    for number in range(10_000):
        out(f"INFO [shm_broadcast.py:{number}] No available block found in 60 seconds\n")
        time.sleep(0.5)


def spin() -> None:
    while True:
        pass


def fork_late() -> None:
    if os.fork():
        return
    time.sleep(0.5)
    sys.stderr.write("ValueError: the worker says why, late\n")
    sys.stderr.flush()
    os._exit(3)


def report(step: str) -> None:
    path = Path(os.environ["FAKE_REPORT"])
    facts = {"step": step, "defaults": {"load_format": "dummy"}, "reason": "told to refuse"}
    path.with_suffix(".part").write_text(json.dumps(facts))
    path.with_suffix(".part").replace(path)


def fail() -> None:
    raise RuntimeError("this engine was told to fail")


ACTIONS: dict[str, Callable[..., object]] = {
    "stage": stage,
    "say": lambda text: out(text + "\n"),
    "half": out,
    "err": lambda text: sys.stderr.write(text + "\n"),
    "flood": flood,
    "bar": bar,
    "children": children,
    "segment": segment,
    "orphan": orphan,
    "files": files,
    "deaf": deaf,
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "hang": lambda: time.sleep(600),
    "spin": spin,
    "nag": nag,
    "fork-late": fork_late,
    "report": report,
    "fail": fail,
    "exit": lambda code: sys.exit(int(code)),
    "die": lambda name: os.kill(os.getpid(), signal.Signals[name]),
}


def main(words: list[str]) -> None:
    """Do one action after the other; each takes as many words as its function has parameters."""
    while words:
        action = ACTIONS[words.pop(0)]
        wanted = len(inspect.signature(action).parameters)
        action(*[words.pop(0) for _ in range(wanted)])


if __name__ == "__main__":
    main(sys.argv[1:])
