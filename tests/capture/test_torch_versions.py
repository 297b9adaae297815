"""Where torch releases differ, each one's behaviour is followed."""

from __future__ import annotations

import pytest

from tests.capture.cases import Row, read_table, run_row

SETUP = read_table("more_operations.jsonl")[0]["setup"]
BEFORE = (
    "gs = g2.get_state(); g4 = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph(g4): x.add_(1)\ntorch.cuda.synchronize()"
)
_ROWS = read_table("torch_versions.jsonl")[1]
CASES = [(row, release) for row in _ROWS for release in row["torch"]]


@pytest.mark.parametrize(
    ("row", "release"), CASES, ids=lambda v: v if isinstance(v, str) else v["case"]
)
def test_each_release_is_followed(row: Row, release: str) -> None:
    got = run_row({"before": BEFORE, "code": row["code"]}, SETUP, as_torch=release)
    want = row["torch"][release]
    if want is None:
        assert got["error"] is None
        assert got["capture_after"] == "active"
        assert got["end_error"] is None
        return
    kind, code, message, state = want
    assert (got["error"]["type"], got["error"]["code"]) == (kind, code)
    assert got["error"]["message"].startswith(message)
    assert got["capture_after"] == state
    assert (got["end_error"] is not None) is (state == "invalidated")


def test_every_row_says_how_it_is_known() -> None:
    assert len(_ROWS) >= 20
    assert all(row["source"] for row in _ROWS)
