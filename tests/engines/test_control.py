"""The near end of the keeper."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.control import split_events


@given(st.lists(st.integers(1, 30), max_size=30))
def test_events_are_the_same_however_they_arrive(cuts: list[int]) -> None:
    data = b'{"started": 1}\n{"tree": [[1, 2, "a b", 0.5, "S"]]}\n{"gone": true}\n{"unfin'
    events, rest, place = [], b"", 0
    for cut in [*cuts, len(data)]:
        found, rest = split_events(rest, data[place : place + cut])
        events += found
        place += cut
    assert [next(iter(event)) for event in events] == ["started", "tree", "gone"]
    assert rest == b'{"unfin'
