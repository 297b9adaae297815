"""The same crash is named the same, whatever was done to its log on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import DATA, expected_logs

CLEAN = (DATA / "corpus/real-vllm030-h200-clean-piecewise.log").read_text(encoding="utf-8")
LOGS = [one.log for one in expected_logs()]


def answer_to(text: str) -> Diagnosis:
    return diagnose_parsed(read_text(text), store.load(), None)


def each_line(form: Callable[[int, str], str]) -> Callable[[str], str]:
    def mutate(text: str) -> str:
        lines = text.rstrip("\n").split("\n")
        return "".join(form(number, line) + "\n" for number, line in enumerate(lines))

    return mutate


def wrapped(width: int) -> Callable[[str], str]:
    def mutate(text: str) -> str:
        rows: list[str] = []
        for raw in text.split("\n"):
            line = raw.rstrip("\r").rsplit("\r", 1)[-1]
            rows += [line[at : at + width] for at in range(0, len(line), width)] or [""]
        return "\n".join(rows)

    return mutate


def docker(_: int, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-09-18T07:41:00.1Z"})


def interleaved(text: str) -> str:
    """Let the ranks of a tensor-parallel run print at the same time."""
    rows: list[str] = []
    waiting: dict[str, list[str]] = {}
    for line in [*text.split("\n"), ""]:
        rank = re.match(r"(?:\x1b\[[\d;]*m)?\((?:Vllm)?Worker[_ ](?:TP\d+|rank=\d+)", line)
        if rank:
            waiting.setdefault(rank.group(0), []).append(line)
            continue
        for several in zip_longest(*waiting.values()):
            rows += [one for one in several if one is not None]
        waiting.clear()
        rows.append(line)
    return "\n".join(rows[:-1])


MUTATIONS: dict[str, Callable[[str], str]] = {
    "colours": each_line(lambda _, line: f"\x1b[0;36m{line}\x1b[0m"),
    "crlf": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "wrapped at 80": wrapped(80),
    "wrapped at 120": wrapped(120),
    "kubernetes": each_line(
        lambda n, line: f"2026-09-18T07:41:{n % 60:02}.{n:09}Z stderr F {line}"
    ),
    "docker": each_line(docker),
    "compose": each_line(lambda _, line: f"vllm-1  | {line}"),
    "journald": each_line(lambda n, line: f"Sep 18 07:41:{n % 60:02} node vllm[870]: {line}"),
    "interleaved ranks": interleaved,
    "twice": lambda text: text + text,
    "after a clean run": lambda text: CLEAN + text,
}


# Wrapping hard, or colouring an indent, can join a source line to the frame above it.
MAY_JOIN_LINES = {"colours", "docker", "wrapped at 80", "wrapped at 120"}


@cache
def unchanged(log: Path) -> Diagnosis:
    return answer_to(log.read_bytes().decode("utf-8", "replace"))


# Every third pair, so that each log meets some mutations and each mutation a hundred logs.
PAIRS = [
    pytest.param(log, mutation, id=f"{mutation}-{log.parent.name}/{log.stem}")
    for row, log in enumerate(LOGS)
    for column, mutation in enumerate(MUTATIONS)
    if log.parent.name == "corpus" or (row + column) % 3 == 0
]
# A few lines that no start announces: behind a clean run they may be that run's.
HEADLESS = {"argparse", "sgl-http-30000", "sgl-eof"}


@pytest.mark.parametrize(("log", "mutation"), PAIRS)
def test_answer_survives(log: Path, mutation: str) -> None:
    before = unchanged(log)
    headless = before.verdict == "not_an_engine_log" or log.stem in HEADLESS
    if mutation == "after a clean run" and headless:
        return
    after = answer_to(MUTATIONS[mutation](log.read_bytes().decode("utf-8", "replace")))
    assert (after.crash_class, after.stage) == (before.crash_class, before.stage)
    if mutation not in MAY_JOIN_LINES:
        assert after.fingerprint == before.fingerprint


CRASHES = [
    log for log in LOGS if not log.parent.name.startswith(("clean", "not_", "user_", "root_"))
]
# A Kubernetes log whose root line lies in two parts; an exit code that only the parent prints; an
# error in a finaliser, which only its echo makes a cause.
PARTIAL = {"error-803", "sgl-died-minus6", "hip-unload-in-del"}


@pytest.mark.parametrize("log", CRASHES, ids=lambda log: f"{log.parent.name}/{log.stem}")
def test_rest_of_the_log_may_be_cut_off(log: Path) -> None:
    text = log.read_bytes().decode("utf-8", "replace")
    whole = unchanged(log)
    if log.stem in PARTIAL or whole.fingerprint is None:
        return
    first, last = _extent(text, whole.evidence[0].line)
    part = "\n".join(text.split("\n")[first - 1 : last]) + "\n"
    cut = answer_to(part)
    assert cut.crash_class == whole.crash_class
    if log.parent.name == "embedded":
        return  # its traceback has no frame that tells profiling from capturing
    assert (cut.crash_class, cut.stage, cut.fingerprint) == (
        whole.crash_class,
        whole.stage,
        whole.fingerprint,
    )


def _extent(text: str, root_line: int) -> tuple[int, int]:
    """From the last stage line before the root's traceback to its end."""
    run = read_text(text).runs[-1]
    nodes = [node for node in run.nodes if node.line <= root_line <= node.last_line]
    starts = [node.record.line if node.record else node.line for node in nodes] or [root_line]
    marks = [mark.line for mark in run.marks if mark.line < min(starts)]
    return (marks[-1] if marks else min(starts)), max([n.last_line for n in nodes] or [root_line])
