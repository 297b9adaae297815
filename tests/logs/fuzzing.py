"""Makes damaged logs out of good ones, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.logs import mutations as m

Damage = Callable[[bytes, random.Random], bytes]
MARKS = (
    b"\x00",
    b"\r",
    b"\x1b[31m",
    b"\x1b]0;title\x07",
    b"\xff\xfe",
    b"[rank0]:",
    b"(EngineCore pid=7) ",
    b"Traceback (most recent call last):",
    b'  File "a.py", line 1, in f',
    b"[bold]",
    b"\xe2\x80\xae",
    b"+ Exception Group Traceback (most recent call last):",
    b"  | ",
    b"  +-+---------------- 1 ---",
    b"During handling of the above exception, another exception occurred:",
    b'{"log":"',
    b"frame #0: x",
    b"!!!!!!! Segfault encountered !!!!!!!",
    b"Fatal Python error: Aborted",
    b"terminate called",
    b"vLLM API server version 0.1",
    b"Capturing CUDA graphs (FULL):  1%|#| 1/9 [",
    b"\n" * 9,
    b"ERROR ",
)


def cut(data: bytes, dice: random.Random) -> bytes:
    a, b = sorted((dice.randrange(len(data) + 1), dice.randrange(len(data) + 1)))
    return data[a:b]


def flip(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randrange(1, 60)):
        if out:
            out[dice.randrange(len(out))] = dice.randrange(256)
    return bytes(out)


def insert(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randrange(1, 20)):
        at = dice.randrange(len(data) + 1)
        data = data[:at] + dice.choice(MARKS) * dice.choice((1, 1, 1, 40)) + data[at:]
    return data


def shuffle(data: bytes, dice: random.Random) -> bytes:
    lines = m.lines_of(data)
    for _ in range(dice.randrange(1, 30)):
        a, b = dice.randrange(len(lines)), dice.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return m.joined(lines)


def drop(data: bytes, dice: random.Random) -> bytes:
    share = dice.random()
    return m.joined([line for line in m.lines_of(data) if dice.random() < share])


def repeat(data: bytes, dice: random.Random) -> bytes:
    lines = m.lines_of(data)
    at = dice.randrange(len(lines))
    return m.joined(lines[:at] + lines[at : at + 5] * dice.randrange(1, 50) + lines[at:])


def wrap(data: bytes, dice: random.Random) -> bytes:
    return m.WRAPPERS[dice.choice(sorted(m.WRAPPERS))](data) if data.strip() else data


def fold(data: bytes, dice: random.Random) -> bytes:
    return m.folded(data, dice.choice((20, 80, 120)))


def join_lines(data: bytes, dice: random.Random) -> bytes:
    return data.replace(b"\n", b"\r", dice.randrange(1, 400))


DAMAGES: tuple[Damage, ...] = (cut, flip, insert, shuffle, drop, repeat, wrap, fold, join_lines)


def damaged(seed: int, logs: list[Path] = m.LOGS) -> bytes:
    dice = random.Random(seed)  # noqa: S311 - the same for the same seed
    data = dice.choice(logs).read_bytes()
    for _ in range(dice.randrange(1, 4)):
        if data.strip():
            data = dice.choice(DAMAGES)(data, dice)
    return data
