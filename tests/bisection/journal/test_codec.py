"""Values to JSON and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.bisection.journal.codec import decode, encode
from capdoctor.bisection.journal.story import Begin, Run
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.verdicts import Reference
from capdoctor.model import EngineSpec, Frame, Stage

SPEC = EngineSpec(
    kind="vllm",
    model="m",
    python=Path("/py"),
    engine_args={"a": [1, {"b": None}]},
    extra_args=("--x",),
    stop_after=Stage.PROFILE_CUDAGRAPH_MEMORY,
)
REQUEST = BisectRequest("vllm", "a", "b", engine=SPEC, gpus=("0", "1"), budget=3.5)
SEEN = Observation(Saw.CRASH, "s1:a", frames=(Frame("f.py", 3, "g"), Frame("h", None, None)))


@pytest.mark.parametrize(
    "value",
    [REQUEST, SEEN, Begin(REQUEST, "/r", "a", "b", ("n",), Reference("s")), Run("a", "x", SEEN)],
)
def test_a_value_survives_the_journal(value: object) -> None:
    assert decode(type(value), json.loads(json.dumps(encode(value)))) == value


def test_a_field_that_an_older_journal_lacks_takes_its_default() -> None:
    assert decode(Observation, {"saw": "clean"}) == Observation(Saw.CLEAN)


def test_a_key_of_a_newer_one_is_passed_over() -> None:
    assert decode(Observation, {"saw": "clean", "later": 1}) == Observation(Saw.CLEAN)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be written"):
        encode(object())
