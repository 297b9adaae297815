"""Thousands of made-up histories: the answer holds the culprit, and a culprit is never wrong."""

from __future__ import annotations

import pytest

from tests.bisection.random_histories import Trial, judge_trial, trial


@pytest.mark.parametrize("block", range(10))
def test_the_answer_always_holds_the_culprit(block: int) -> None:
    """1,000 histories with fixed seeds; ten times as many run under bench/."""
    wrong: list[tuple[int, Trial, str]] = []
    for seed in range(100 * block, 100 * (block + 1)):
        one = trial(seed)
        complaint = judge_trial(one, seed)
        if complaint:
            wrong.append((seed, one, complaint))
    assert wrong == []
