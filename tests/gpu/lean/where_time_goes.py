"""Look five times a second at what the Python processes of one start are doing."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from bench import time_to_verdict as bench

# Loaded by every Python process of the start; a thread of Python alone, since the sampler of
# faulthandler can crash a process that imports.
SAMPLER = """
import os, sys, threading, time
folder = os.environ.get("LEAN_SAMPLES")
def sample(main, file):
    while True:
        time.sleep(0.2)
        frame, names = sys._current_frames().get(main), []
        while frame is not None:
            code = frame.f_code
            names.append(code.co_filename + ":" + code.co_name)
            frame = frame.f_back
        file.write("%.2f\\t%s\\n" % (time.time(), "|".join(reversed(names))))
def go():
    file = open(os.path.join(folder, "%d.txt" % os.getpid()), "w", buffering=1)
    arguments = (threading.main_thread().ident, file)
    threading.Thread(target=sample, args=arguments, daemon=True).start()
if folder:
    go()
    os.register_at_fork(after_in_child=go)
"""
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|site|python3\.\d+)/")
_SHORTEST = 0.4


def look(machine: bench.Machine, folder: Path) -> dict[str, Any]:
    """Start once with samples taken; give for each process where its seconds went."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(SAMPLER)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    variables = (("PYTHONPATH", path), ("LEAN_SAMPLES", str(folder)))
    way = dataclasses.replace(bench.SERIES, name="sampled", variables=variables)
    result = machine.measure(way, "sampled")
    files = sorted(folder.glob("*.txt"), key=lambda file: int(file.stem))
    return {"run": result, "processes": {file.stem: spans(file.read_text()) for file in files}}


def spans(text: str) -> list[dict[str, Any]]:
    """Give what a process did for longer than a moment: from when, for how long, and what.

    Neighbouring samples with the same outline of the stack are one span; ``inside`` says where in
    it the time went. The last entry sums up the imports.
    """
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 1]
    found: list[dict[str, Any]] = []
    for (at, stack), (until, _) in itertools.pairwise(rows):
        what, seconds = outline(stack), float(until) - float(at)
        if not found or found[-1]["what"] != what:
            found.append({"at": float(at), "seconds": 0.0, "what": what, "inside": Counter()})
        found[-1]["seconds"] = round(found[-1]["seconds"] + seconds, 2)
        found[-1]["inside"][innermost(stack)] += seconds
    long = [span for span in found if span["seconds"] >= _SHORTEST]
    return [span | {"inside": longest(span["inside"], 4)} for span in long] + [imports(rows)]


def own_frames(stack: str) -> list[str]:
    """Give the frames of vLLM's own, without those that only wrap others."""
    frames = [_LIBRARY.sub("", frame) for frame in stack.split("|")]
    return [
        frame.removeprefix("vllm/")
        for frame in frames
        if frame.startswith("vllm/") and not frame.startswith("vllm/tracing")
    ]


def outline(stack: str, depth: int = 6) -> str:
    """Give the outermost frames of vLLM's own, else the two innermost of all."""
    frames = [_LIBRARY.sub("", frame) for frame in stack.split("|") if "importlib" not in frame]
    return " > ".join(own_frames(stack)[:depth] or frames[-2:])


def innermost(stack: str) -> str:
    """Give the last frames: of vLLM's own, and of all."""
    own, last = own_frames(stack)[-1:], _LIBRARY.sub("", stack.rpartition("|")[2])
    return " > ".join([*own, last])


def longest(seconds: Counter[str], most: int) -> dict[str, float]:
    """Give the entries that are worth naming, the longest first."""
    top = seconds.most_common(most)
    return {name: round(value, 2) for name, value in top if value >= _SHORTEST}


def imports(rows: list[list[str]]) -> dict[str, Any]:
    """Give the seconds in which each package was being imported, the innermost one counting."""
    seconds: Counter[str] = Counter()
    for (at, stack), (until, _) in itertools.pairwise(rows):
        modules = [frame for frame in stack.split("|")[1:] if frame.endswith(":<module>")]
        if modules and "importlib" in stack:
            package = _LIBRARY.sub("", modules[-1]).split("/")[0]
            seconds[package] += float(until) - float(at)
    return {"imports": longest(seconds, 15)}
