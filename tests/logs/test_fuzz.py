"""Damaged logs neither stop the reader nor slow it down; more of them in bench/fuzz_reader.py."""

from __future__ import annotations

import time

import pytest

from capdoctor.logs import ParsedLog, read_text
from tests.logs.fuzzing import damaged

SEEDS = 2_000
BATCH = 250
SLOWEST = 2.0  # seconds for one log


def assert_sound(log: ParsedLog) -> None:
    for run in log.runs:
        assert 1 <= run.first_line <= run.last_line + 1 <= log.total_lines + 1
        for node in run.nodes:
            assert all(
                0 <= link.to < len(run.nodes) and link.to != node.index for link in node.links
            )
            assert 1 <= node.line <= node.last_line <= log.total_lines
            assert "\x1b" not in node.message
        for line in run.lines:
            assert not set(line.shown) & set("\x1b\x00\n")


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_damaged_logs_are_read_in_time_and_soundly(first: int) -> None:
    for seed in range(first, first + BATCH):
        data = damaged(seed)
        begin = time.perf_counter()
        log = read_text(data)
        assert time.perf_counter() - begin < SLOWEST, seed
        assert_sound(log)
