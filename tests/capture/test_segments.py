"""Piecewise capture on the virtual device: segments, eager breaks, replay."""

from __future__ import annotations

import pytest

from capdoctor.capture.checker.run import captured_in_pieces
from capdoctor.capture.segments import PiecewiseCapture

torch = pytest.importorskip("torch")


@pytest.fixture
def stream():  # noqa: ANN201
    from capdoctor.capture.device import VirtualDevice

    with VirtualDevice(stop_at_first=True):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            yield stream


def test_an_eager_break_runs_outside_any_capture(stream) -> None:  # noqa: ANN001
    seen = []
    with PiecewiseCapture() as capture:
        seen.append(stream.is_capturing())
        capture.eager(lambda: seen.append(stream.is_capturing()))
        seen.append(stream.is_capturing())
    assert seen == [True, False, True]
    assert not stream.is_capturing()
    assert PiecewiseCapture.running() is None


@pytest.mark.usefixtures("stream")
def test_a_replay_does_all_pieces_again_in_order() -> None:
    x = torch.ones(2, device="cuda")
    notes = []
    with PiecewiseCapture() as capture:
        y = x * 2
        capture.note(lambda: notes.append("noted"))
        capture.eager(lambda: notes.append(y.sum().item()))
        z = y + 1
    x.fill_(5)
    capture.replay()
    assert notes == ["noted", 4.0, "noted", 20.0]
    assert z.tolist() == [11.0, 11.0]


@pytest.mark.usefixtures("stream")
def test_an_error_ends_the_capture() -> None:
    with pytest.raises(KeyError), PiecewiseCapture():
        raise KeyError
    assert PiecewiseCapture.running() is None
    torch.cuda.synchronize()


@pytest.mark.usefixtures("stream")
def test_the_result_comes_through() -> None:
    assert captured_in_pieces(lambda: 3) == 3


@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize("kind", [list, tuple, dict, None])
def test_later_segments_see_what_an_eager_part_gives_at_a_replay(kind: type | None) -> None:
    x = torch.ones(2, device="cuda")

    def eager_part() -> object:
        if kind is dict:
            return {0: x + 1}
        return x + 1 if kind is None else kind([x + 1])

    with PiecewiseCapture(torch.cuda.graph_pool_handle()) as capture:
        given = capture.eager(eager_part)
        y = (given if kind is None else given[0]) * 10
    x.fill_(5)
    capture.replay()
    assert y.tolist() == [60.0, 60.0]
