"""What a kill in the middle of a write leaves behind."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from capdoctor.bisection.journal.journal import Journal
from capdoctor.errors import CannotDo


def _journal(tmp_path: Path, count: int = 3) -> Journal:
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(count):
        journal.append({"event": "x", "number": number, "text": "zwei\nZeilen \N{SNOWMAN}"})
    return journal


def test_events_come_back_in_order(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    assert [event["number"] for event in journal.events()] == [0, 1, 2]
    assert journal.path.read_bytes().count(b"\n") == 3


def test_a_torn_last_line_is_passed_over_at_every_byte(tmp_path: Path) -> None:
    journal = _journal(tmp_path, 2)
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        journal.path.write_bytes(whole[:cut])
        assert len(journal.events()) == 1


def test_an_event_after_a_torn_line_is_whole(tmp_path: Path) -> None:
    journal = _journal(tmp_path, 2)
    journal.path.write_bytes(journal.path.read_bytes()[:-7])
    journal.append({"event": "x", "number": 9})
    assert [event["number"] for event in journal.events()] == [0, 9]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(lines[0] + b"{half\n" + lines[2])
    with pytest.raises(CannotDo, match="line 2 of"):
        journal.events()


def test_a_missing_journal_is_no_bisection(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="holds no bisection"):
        Journal(tmp_path / "journal.jsonl").events()


def test_a_full_disk_is_a_sentence_and_nothing_half_written_counts(tmp_path: Path) -> None:
    journal = _journal(tmp_path, 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 10, before[1]))
    try:
        with pytest.raises(CannotDo, match="cannot be written: File too large") as caught:
            journal.append({"event": "x", "text": "a" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "resume" in caught.value.hint
    assert len(journal.events()) == 2
    journal.append({"event": "x", "number": 9})
    assert len(journal.events()) == 3


def test_each_event_is_on_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle))[1])
    _journal(tmp_path, 2)
    assert len(synced) == 3  # two lines, and the folder once
