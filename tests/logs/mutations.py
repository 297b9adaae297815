"""What happens to logs on their way to a reader: each keeps the meaning and changes the bytes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

from capdoctor.logs import ParsedLog, read_text

CORPUS = Path(__file__).resolve().parent.parent / "data" / "corpus"
LOGS = sorted(CORPUS.glob("*.log"))


def corpus(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


def lines_of(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def joined(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def crlf(data: bytes) -> bytes:
    return b"".join(line.rstrip(b"\r") + b"\r\n" for line in lines_of(data))


def plain_lf(data: bytes) -> bytes:
    return b"".join(line.rstrip(b"\r") + b"\n" for line in lines_of(data))


def coloured(data: bytes) -> bytes:
    """As vLLM 0.8 to 0.11 and the coloured formatter of 0.12 and on write it."""
    out = []
    for line in lines_of(data):
        if line.startswith(b"(") and b") " in line:
            head, rest = line.split(b") ", 1)
            line = b"\x1b[1;36m" + head + b")\x1b[0;0m " + rest  # noqa: PLW2901
        for level, colour in (
            (b"ERROR ", b"\x1b[31mERROR\x1b[0m "),
            (b"INFO ", b"\x1b[32mINFO\x1b[0m "),
        ):
            line = line.replace(level, colour, 1)  # noqa: PLW2901
        out.append(line)
    return joined(out)


def _each(data: bytes, wrap: Callable[[int, bytes], bytes]) -> bytes:
    return joined([wrap(i, line) for i, line in enumerate(lines_of(data))])


def cri(data: bytes) -> bytes:
    def wrap(i: int, line: bytes) -> bytes:
        return b"2026-03-04T05:06:%02d.123456789Z stderr F " % (i % 60) + line

    return _each(data, wrap)


def cri_parts(data: bytes) -> bytes:
    """The runtime cuts lines at 16 KiB; here at 50 bytes."""
    out = []
    stamp = b"2026-03-04T05:06:07.123456789Z stdout "
    for line in lines_of(data):
        parts = [line[i : i + 50] for i in range(0, len(line), 50)] or [b""]
        out += [stamp + b"P " + part for part in parts[:-1]] + [stamp + b"F " + parts[-1]]
    return joined(out)


def docker_json(data: bytes) -> bytes:
    def wrap(_: int, line: bytes) -> bytes:
        text = line.decode("utf-8", "replace") + "\n"
        entry = {"log": text, "stream": "stderr", "time": "2026-03-04T05:06:07.1Z"}
        return json.dumps(entry).encode()

    return _each(data, wrap)


def journald(data: bytes) -> bytes:
    return _each(data, lambda i, line: b"Aug 19 18:34:%02d gpu-7 vllm[8707]: " % (i % 60) + line)


def compose(data: bytes) -> bytes:
    return _each(data, lambda _, line: b"vllm-server-1  | " + line)


def kubectl(data: bytes) -> bytes:
    return _each(data, lambda _, line: b"[pod/vllm-0/server] " + line)


def iso(data: bytes) -> bytes:
    return _each(data, lambda i, line: b"2026-03-04T05:06:%02d.5Z " % (i % 60) + line)


def nested(data: bytes) -> bytes:
    return cri(compose(data))


def service_name(data: bytes) -> bytes:
    return _each(data, lambda _, line: b"vllm  | " + line)


def slurm_label(data: bytes) -> bytes:
    return _each(data, lambda _, line: b"0: " + line)


def quoted(data: bytes) -> bytes:
    return _each(data, lambda _, line: b"> " + line)


WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    f.__name__: f
    for f in (cri, cri_parts, docker_json, journald, compose, kubectl, iso, nested, service_name,
              slurm_label, quoted)
}  # fmt: skip


def folded(data: bytes, width: int) -> bytes:
    """A terminal's hard wrap."""
    out: list[bytes] = []
    for raw in lines_of(data):
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        text = text[text.rfind("\r") + 1 :]
        out += [text[i : i + width].encode() for i in range(0, len(text), width)] or [b""]
    return joined(out)


def word_wrapped(data: bytes, width: int) -> bytes:
    """A chat's wrap at spaces."""
    out: list[bytes] = []
    for raw in lines_of(data):
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        text = text[text.rfind("\r") + 1 :]
        indent = text[: len(text) - len(text.lstrip())]
        pieces = textwrap.wrap(
            text, width, break_long_words=True, break_on_hyphens=False,
            drop_whitespace=True, initial_indent="", replace_whitespace=False,
        )  # fmt: skip
        if pieces and not pieces[0].startswith(indent):
            pieces[0] = indent + pieces[0]
        out += [piece.encode() for piece in pieces] or [b""]
    return joined(out)


def story(log: ParsedLog) -> list[tuple[object, ...]]:
    """What a log tells, without line numbers and times."""
    told: list[tuple[object, ...]] = []
    for run in log.runs:
        for node in run.nodes:
            frames = tuple((f.path, f.line, f.function) for f in node.frames)
            links = tuple((link.kind, link.to) for link in node.links)
            told.append((node.origin, node.type, node.message, frames, links, node.stream.name))
        told += [("event", e.kind, e.message, e.file, e.lineno) for e in run.events]
        told += [("death", d.source, d.process, d.exit_code, d.signal) for d in run.deaths]
        told.append(("stages", *dict.fromkeys(mark.reached for mark in run.marks)))
    return told


def told(data: bytes) -> list[tuple[object, ...]]:
    return story(read_text(data))


def last_segments(data: bytes) -> bytes:
    """What is left on a screen of lines that carriage returns overwrote."""
    lines = [line.rstrip(b"\r") for line in lines_of(data)]
    return joined([line[line.rfind(b"\r") + 1 :] for line in lines])
