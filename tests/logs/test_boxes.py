"""Tracebacks as Rich draws them, made by Rich itself."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.traceback import Traceback

from capdoctor.logs import ExceptionNode, read_text
from capdoctor.logs.boxes import unboxed

SOURCE = """
def initialize_kv_caches(sizes):
    blocks = [size for size in sizes if size > 0]
    if not blocks:
        raise ValueError("No available memory for the cache blocks.")

def start(sizes):
    if sizes is not None:
        initialize_kv_caches(sizes)

start([])
"""


def failed(folder: Path) -> BaseException:
    file = folder / "site-packages" / "vllm" / "v1" / "core.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    with pytest.raises(ValueError, match="No available memory") as caught:
        exec(compile(SOURCE, str(file), "exec"), {"__name__": "vllm.v1.core"})  # noqa: S102
    return caught.value


def drawn(error: BaseException, width: int) -> str:
    out = io.StringIO()
    trace = Traceback.from_exception(type(error), error, error.__traceback__, width=width)
    Console(file=out, width=width).print(trace)
    return out.getvalue()


def node_of(text: str) -> ExceptionNode:
    (run,) = read_text(text).runs
    (node,) = run.nodes
    return node


@pytest.mark.parametrize("width", [80, 100, 160])
def test_box_reads_as_the_traceback_it_shows(tmp_path: Path, width: int) -> None:
    node = node_of(f"INFO: starting\n{drawn(failed(tmp_path), width)}bye\n")
    assert node.type == "ValueError"
    assert node.message.startswith("No available memory for the cache blocks.")
    frames = [(frame.path, frame.line, frame.function) for frame in node.frames]
    assert frames[-2:] == [
        ("vllm/v1/core.py", 9, "start"),
        ("vllm/v1/core.py", 5, "initialize_kv_caches"),
    ]
    assert node.frames[-1].code.startswith("raise ValueError(")


@pytest.mark.parametrize("text", ["\u256d\u2500 Options \u2500\u256e\n\u2502 --help \u2502\n"])
def test_box_of_something_else_stays(text: str) -> None:
    lines = text.encode().split(b"\n")
    assert unboxed(lines) == lines


def test_box_that_breaks_off_hides_nothing_behind_it(tmp_path: Path) -> None:
    box = drawn(failed(tmp_path), 80).split("\n")[:4]
    error = "RuntimeError: CUDA error: invalid argument"
    (run,) = read_text("\n".join([*box, "INFO: on", error])).runs
    assert [node.type for node in run.nodes][-1] == "RuntimeError"


@given(st.lists(st.text(alphabet="\u256d\u256e\u2570\u256f\u2500\u2502 a:1in\u2771")))
def test_lines_are_neither_lost_nor_added(texts: list[str]) -> None:
    lines = [text.encode() for text in texts]
    assert len(unboxed(lines)) == len(lines)
