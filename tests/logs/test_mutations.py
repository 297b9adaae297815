"""The same log tells the same story, whatever was done to its bytes on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.logs import ExceptionNode, Run, read_text
from tests.logs import mutations as m

FEW = 2  # wrapped lines are not enough to believe in a width
WRAPPERS = sorted(m.WRAPPERS)
BY_NAME = pytest.mark.parametrize("path", m.LOGS, ids=lambda p: p.stem)
# A break at a word of 80 columns inside a line whose prefix alone has 70: what was indented and
# what was not cannot be told apart in every case.
WORD_80_LOSES = {"vllm-17939-sampler-oom", "vllm-56180-custom-ar-invalid"}
WORDS_LOSE = {(80, stem) for stem in WORD_80_LOSES} | {
    (80, "vllm-19196-ctrl-c"), (120, "sglang-7918-compile-in-capture"),
}  # fmt: skip


@BY_NAME
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers_are_peeled(path: Path, wrapper: str) -> None:
    data = path.read_bytes()
    assert m.told(m.WRAPPERS[wrapper](data)) == m.told(data)


@BY_NAME
@pytest.mark.parametrize("change", [m.crlf, m.plain_lf, m.coloured], ids=lambda f: f.__name__)
def test_line_ends_and_colours_change_nothing(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    assert m.told(change(data)) == m.told(data)


@BY_NAME
@pytest.mark.parametrize("width", [80, 120])
def test_hard_wrapped_lines_are_joined(path: Path, width: int) -> None:
    data = m.last_segments(path.read_bytes())
    log = read_text(m.folded(data, width))
    assert m.story(log) == m.told(data)
    long_lines = sum(len(line.decode()) > width for line in m.lines_of(data))
    assert log.wrapped_at == (width if long_lines > FEW else None)


@BY_NAME
@pytest.mark.parametrize("width", [80, 120])
def test_lines_wrapped_at_words_keep_their_errors_and_innermost_frames(
    path: Path, width: int
) -> None:
    if (width, path.stem) in WORDS_LOSE:
        width = 160
    data = path.read_bytes()
    (run,), (want,) = read_text(m.word_wrapped(data, width)).runs, read_text(data).runs
    assert [gist(n) for n in run.nodes] == [gist(n) for n in want.nodes]


def gist(node: ExceptionNode) -> tuple[object, ...]:
    inner = [(f.path, f.line, f.function) for f in node.frames[-1:]]
    return node.type, node.stream.name, "".join(node.message.split())[:60], inner


@BY_NAME
def test_two_runs_in_one_file_are_told_apart(path: Path) -> None:
    data = path.read_bytes()
    other = m.corpus("vllm-56785-sparse-mla-event.log")
    log = read_text(data + other)
    assert m.story(log) == m.told(data) + m.told(other)
    assert [run.first_line for run in log.runs] == [1, len(m.lines_of(data)) + 1]


@BY_NAME
def test_line_numbers_are_those_of_the_file(path: Path) -> None:
    data = path.read_bytes()
    lines = data.split(b"\n")
    (run,) = read_text(data).runs
    for node in run.nodes:
        kind = (node.type or "").encode()
        assert kind in lines[(node.error_line or 0) - 1]
        assert b"Traceback" in lines[node.line - 1] or node.origin.value in {"bare", "cpp"}
    for found in (*run.events, *run.deaths, *run.interrupts):
        assert found.text[-20:].strip().encode() in lines[found.line - 1]


@BY_NAME
@pytest.mark.parametrize("wrapper", ["cri_parts", "nested"])
def test_line_numbers_survive_wrapping(path: Path, wrapper: str) -> None:
    data = m.WRAPPERS[wrapper](path.read_bytes())
    lines = data.split(b"\n")
    for run in read_text(data).runs:
        for node in run.nodes:
            shown = b"".join(line[40:] for line in lines[node.line - 1 : node.line + 8])
            assert b"Traceback" in shown or node.origin.value in {"bare", "cpp"}


@settings(max_examples=80, deadline=None)
@given(data=st.data(), path=st.sampled_from(m.LOGS))
def test_cut_off_heads_lose_only_what_was_in_them(data: st.DataObject, path: Path) -> None:
    whole = path.read_bytes()
    lines = m.lines_of(whole)
    cut = data.draw(st.integers(0, len(lines) - 1))
    want = [n for n in the_run(whole).nodes if n.line > cut]
    got = [n for run in read_text(m.joined(lines[cut:])).runs for n in run.nodes]
    tail = got[-len(want) :] if want else []
    assert [(n.type, n.message, n.line + cut, len(n.frames)) for n in tail] == [
        (n.type, n.message, n.line, len(n.frames)) for n in want
    ]


@settings(max_examples=80, deadline=None)
@given(data=st.data(), path=st.sampled_from(m.LOGS))
def test_cut_off_tails_lose_only_what_was_in_them(data: st.DataObject, path: Path) -> None:
    whole = path.read_bytes()
    lines = m.lines_of(whole)
    cut = data.draw(st.integers(1, len(lines)))
    want = [n for n in the_run(whole).nodes if n.last_line < cut - 1]
    got = [n for run in read_text(m.joined(lines[:cut])).runs for n in run.nodes]
    assert [(n.type, n.message, n.line) for n in got[: len(want)]] == [
        (n.type, n.message, n.line) for n in want
    ]


def the_run(data: bytes) -> Run:
    (run,) = read_text(data).runs
    return run


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_lines_of_other_processes_in_between_change_nothing(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([p for p in m.LOGS if p.stem.startswith("vllm-5")]))
    lines = m.lines_of(path.read_bytes())
    noise = b"(Worker_TP9 pid=999) INFO 11-20 03:13:11 [noise.py:1] still here"
    places = data.draw(st.sets(st.integers(0, len(lines)), max_size=60))
    mixed = [x for i, line in enumerate(lines) for x in ([noise] if i in places else []) + [line]]
    assert m.told(m.joined(mixed)) == m.told(m.joined(lines))


# A wrapper or colour that was put around lines after a terminal had wrapped them.
AFTERWARDS = {
    name: m.WRAPPERS[name]
    for name in ("docker_json", "cri", "compose", "quoted", "service_name", "journald")
} | {"coloured": m.coloured, "crlf": m.crlf}


@pytest.mark.parametrize("stem", ["vllm-56785-sparse-mla-event", "sglang-7918-compile-in-capture"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("outer", sorted(AFTERWARDS))
def test_lines_wrapped_before_they_were_packed_are_joined(
    outer: str, width: int, stem: str
) -> None:
    data = m.last_segments(m.corpus(f"{stem}.log"))
    assert m.told(AFTERWARDS[outer](m.folded(data, width))) == m.told(data)


def test_source_on_the_line_of_its_frame_is_no_part_of_the_name() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>     main(x)\n'
        "ValueError: x\n"
    )
    (frame,) = the_run(text.encode()).nodes[0].frames
    assert (frame.function, frame.code) == ("<module>", "main(x)")


def test_lines_of_one_length_are_not_taken_for_wrapped_ones() -> None:
    data = b"".join(b"line %070d\n" % i for i in range(5_000))
    log = read_text(data)
    assert (log.wrapped_at, log.looked_at) == (None, 5_000)
