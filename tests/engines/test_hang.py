"""When an engine is taken to hang."""

from __future__ import annotations

from capdoctor.engines.hang import HangWatch


def quiet(
    watch: HangWatch, until: int, cpu_per_second: float = 0.0, start: int = 0
) -> float | None:
    """Let seconds pass and give the one in which it was taken to hang."""
    for second in range(start, until):
        watch.computed({1: 5.0 + second * cpu_per_second}, float(second))
        if watch.verdict(float(second)) is not None:
            return float(second)
    return None


def test_silence_without_work_is_a_hang_after_the_patience() -> None:
    watch = HangWatch(30.0)
    watch.printed(b"Starting to load model", 2.0)
    found = quiet(watch, 100)
    assert found is not None
    assert 32.0 <= found <= 35.0


def test_work_without_words_is_no_hang() -> None:
    assert quiet(HangWatch(30.0), 300, cpu_per_second=0.9) is None


def test_timers_of_a_waiting_engine_are_no_work() -> None:
    assert quiet(HangWatch(30.0), 100, cpu_per_second=0.005) is not None


def test_endless_work_without_words_is_a_hang_in_the_end() -> None:
    watch = HangWatch(10.0)
    found = quiet(watch, 500, cpu_per_second=1.0)
    assert found == 120.0
    hang = watch.verdict(120.0)
    assert hang is not None
    assert hang.busy


def test_a_new_line_starts_the_patience_anew() -> None:
    watch = HangWatch(30.0)
    for second in range(0, 200, 20):
        watch.printed(b"step " + bytes([65 + second // 20]), float(second))
        assert watch.verdict(second + 19.0) is None


def test_the_same_complaint_again_is_no_sign_of_life() -> None:
    watch = HangWatch(100.0)
    for minute in range(1, 4):
        now = minute * 60.0
        watch.printed(f"INFO 11-29 15:0{minute}:00 no block found in 60 s".encode(), now)
    assert watch.verdict(159.0) is None
    assert watch.verdict(160.0) is not None


def test_a_dead_process_does_not_count_as_work_undone() -> None:
    watch = HangWatch(10.0)
    watch.computed({1: 50.0, 2: 80.0}, 1.0)
    for second in range(2, 30):
        watch.computed({1: 50.0}, float(second))
    assert watch.verdict(29.0) is not None
