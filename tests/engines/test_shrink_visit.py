"""When the visit calls two crashes one; needs no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.shrink.visit import Visit, compare, short


def _answer(fingerprint: str | None, outcome: str = "crashed") -> dict[str, Any]:
    found = {"class": "capture_event", "stage": "capture", "fingerprint": fingerprint}
    return {"outcome": outcome, "seconds": 4.0, "diagnosis": found if fingerprint else None}


@pytest.mark.parametrize(
    ("full", "shrunk", "same"),
    [
        (_answer("s1:a"), _answer("s1:a"), True),
        (_answer("s1:a"), _answer("s1:b"), False),
        (_answer("s1:a"), _answer(None, "started"), False),
        (_answer(None, "started"), _answer(None, "started"), False),
    ],
)
def test_two_crashes_are_one_by_their_fingerprints(
    tmp_path: Path, full: dict[str, Any], shrunk: dict[str, Any], *, same: bool
) -> None:
    visit = Visit(tmp_path / "out", tmp_path)
    visit.save("full", short(full))
    visit.save("shrunk", short(shrunk))
    found = compare(Visit(visit.out, tmp_path))
    assert found["same_fingerprint"] is same
    assert found["both_crashed"] is (full["outcome"] == shrunk["outcome"] == "crashed")
    assert found["seconds"] == [4.0, 4.0]
