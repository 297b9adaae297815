"""Arguments out of texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.capture.checker.arguments import Argument, TensorSpec, build, parse_argument
from capdoctor.errors import UsageError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("x=float32[8,16]@cuda", TensorSpec("float32", (8, 16), "cuda", "randn")),
        ("x=float32[8, 16]", TensorSpec("float32", (8, 16), "cuda", "randn")),
        ("x=int64[4]@cpu", TensorSpec("int64", (4,), "cpu", "zeros")),
        ("x=int32[4]@cuda:0:ones", TensorSpec("int32", (4,), "cuda:0", "ones")),
        ("x=int32[4]@cuda:arange", TensorSpec("int32", (4,), "cuda", "arange")),
        ("x=bool[]@pinned", TensorSpec("bool", (), "pinned", "zeros")),
        ("x=bfloat16[2,0]:zeros", TensorSpec("bfloat16", (2, 0), "cuda", "zeros")),
    ],
)
def test_a_tensor_is_described_by_dtype_shape_device_and_filling(
    text: str, spec: TensorSpec
) -> None:
    assert parse_argument(text) == Argument("x", spec)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=3", 3),
        ("scale=0.5", 0.5),
        ("flag=True", True),
        ("nothing=None", None),
        ("sizes=[1, 2]", [1, 2]),
        ("names=['a','b=c']", ["a", "b=c"]),
        ("pair=(1,2)", (1, 2)),
    ],
)
def test_a_python_value_is_itself(text: str, value: object) -> None:
    assert parse_argument(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "=3",
        "2x=3",
        "x=float32[8",
        "x=float32[a]",
        "x=float32[8]@mps",
        "x=float32[8]@cuda:1",
        "x=float32[8]@cuda:twos",
        "x=__import__('os')",
        "x=",
    ],
)
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_argument(text)
    assert error.value.hint


@settings(deadline=None)  # the machine's load is not the reader's
@given(st.lists(st.integers(0, 9), max_size=4), st.sampled_from(["float16", "int8", "uint8"]))
def test_every_shape_comes_back(shape: list[int], dtype: str) -> None:
    spec = parse_argument(f"x={dtype}[{','.join(map(str, shape))}]@cpu").value
    (tensor,) = build((Argument("x", spec),)).values()
    assert list(tensor.shape) == shape
    assert tensor.dtype is getattr(torch, dtype)


@settings(deadline=None)  # the machine's load is not the reader's
@given(st.text(max_size=30))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parse_argument(text)
    except UsageError:
        return


def test_the_same_numbers_at_every_run() -> None:
    arguments = (parse_argument("x=float32[5]@cpu"),)
    assert torch.equal(build(arguments)["x"], build(arguments)["x"])
    assert build((parse_argument("i=int32[2,2]@cpu:arange"),))["i"].tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("text", ["x=float99[2]@cpu", "x=tensor[2]@cpu"])
def test_an_unknown_dtype_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="no dtype"):
        build((parse_argument(text),))


def test_a_tensor_that_cannot_be_made_says_why() -> None:
    with pytest.raises(UsageError, match=r"99999999999,\).*: .*(memory|allocate|bytes)"):
        build((parse_argument("x=float32[9999999999999]@cpu"),))
