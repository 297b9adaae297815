"""Whole checks of small files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.capture.checker import CheckOptions, check, parse_argument, parse_target
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import CheckResult

pytest.importorskip("torch")

Write = Callable[..., str]
HEAD = "import torch\nX = torch.ones(4, device='cuda')\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def go(text: str, name: str = "target.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)
        return str(path)

    return go


def run(target: str, **options: object) -> CheckResult:
    return check(parse_target(target), CheckOptions(as_torch="2.11", **options))  # type: ignore[arg-type]


def rules(result: CheckResult) -> list[tuple[str, int]]:
    return [(finding.rule, finding.line) for finding in result.findings]


def test_all_violations_of_a_run_are_collected(write: Write) -> None:
    file = write(
        "def captured():\n"
        "    y = X * 2\n"
        "    y[0] = 1\n"
        "    if y.sum() > 0:\n"
        "        y = y.nonzero()\n"
        "    return y\n"
    )
    result = run(file)
    assert rules(result) == [("pageable_copy", 5), ("host_read", 6), ("data_dependent_size", 7)]
    first, second = result.findings[:2]
    assert first.file.endswith("target.py")
    assert (first.function, first.would_raise.code, first.invalidates) == ("captured", None, False)
    assert (second.would_raise.code, second.invalidates) == (900, True)
    assert "Cannot copy between CPU and CUDA tensors" in first.would_raise.message
    assert all(finding.legal_way for finding in result.findings)
    assert result.covered.operations > 3


def test_the_first_violation_stops_a_run_that_asks_for_it(write: Write) -> None:
    file = write(
        "DONE = []\ndef captured():\n    X.sum().item()\n    DONE.append(1)\n    X[0] = 1\n"
    )
    assert rules(run(file, stop_at_first=True)) == [("host_read", 5)]


def test_a_loop_is_reported_once(write: Write) -> None:
    file = write(
        "def captured():\n    for i in range(9):\n        X[i % 4].item()\n    X.tolist()\n"
    )
    assert rules(run(file)) == [("host_read", 5), ("pageable_copy", 6)]


def test_the_bodys_own_operations_are_no_findings(write: Write) -> None:
    file = write("N = int(X.sum())\nX[0] = 1\ndef captured(): return X + N\n")
    assert run(file).findings == ()


def test_every_captured_function_is_checked_and_no_other(write: Write) -> None:
    file = write(
        "def captured_one(): return X.sum().item()\n"
        "def captured_two(): return X + 1\n"
        "def helper(): return X.tolist()\n"
    )
    assert rules(run(file)) == [("host_read", 3)]
    assert rules(run(f"{file}::helper")) == [("pageable_copy", 5)]


def test_a_finding_has_the_stack_from_the_users_function_on(write: Write) -> None:
    file = write(
        "def inner(t): return t.item()\n"
        "def outer(t): return inner(t.sum())\n"
        "def captured(): return outer(X)\n"
    )
    (finding,) = run(file).findings
    assert [frame.function for frame in finding.stack] == ["captured", "outer", "inner"]
    assert (finding.line, finding.function) == (3, "inner")


def test_what_only_the_end_shows_is_put_at_the_function(write: Write) -> None:
    file = write(
        "def captured():\n"
        "    side = torch.cuda.Stream()\n"
        "    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side):\n"
        "        X.add_(1)\n"
    )
    (finding,) = run(file).findings
    assert (finding.rule, finding.line, finding.function) == ("unjoined_stream", 3, "captured")
    assert finding.would_raise.code == 904


def test_a_method_of_a_module_object_can_be_named(write: Write) -> None:
    file = write(
        "class Layer(torch.nn.Module):\n"
        "    def forward(self, n: int = 2):\n"
        "        return X[:n].tolist()\n"
        "layer = Layer()\n"
    )
    assert rules(run(f"{file}::layer")) == [("pageable_copy", 5)]
    assert rules(run(f"{file}::layer.forward")) == [("pageable_copy", 5)]


PIECES = (
    "EVENT = torch.cuda.Event()\n"
    "SIDE = torch.cuda.Stream()\n"
    "class Attention(torch.nn.Module):\n"
    "    eager_break = True\n"
    "    def forward(self, x):\n"
    "        SIDE.wait_event(EVENT)\n"
    "        return x\n"
    "attention = Attention()\n"
    "def attend(x):\n"
    "    return x.sum().item()\n"
    "def captured():\n"
    "    EVENT.record()\n"
    "    return attention(X)\n"
    "def other():\n"
    "    return attend(X + 1)\n"
)


def test_pieces_are_broken_at_marked_modules(write: Write) -> None:
    file = write(PIECES)
    result = run(file, piecewise=True)
    assert rules(result) == [("event_of_ended_capture", 8)]
    assert result.findings[0].would_raise.code == 1
    assert run(file).findings == ()


def test_pieces_are_broken_at_functions_that_the_user_names(write: Write) -> None:
    file = write(PIECES)
    assert rules(run(f"{file}::other", piecewise=True)) == [("host_read", 12)]
    assert run(f"{file}::other", piecewise=True, eager=("attend",)).findings == ()
    with pytest.raises(CannotDo, match="no such function"):
        run(f"{file}::other", piecewise=True, eager=("absent",))


def test_a_cache_that_the_warm_up_fills_is_no_finding(write: Write) -> None:
    file = write(
        "CACHE = {}\n"
        "def captured():\n"
        "    if 'c' not in CACHE:\n"
        "        CACHE['c'] = torch.tensor([1.0], device='cuda')\n"
        "    return X * CACHE['c']\n"
    )
    assert rules(run(file)) == [("pageable_copy", 6)]
    assert run(file, warm_up=1).findings == ()


def test_arguments_are_handed_to_the_functions_that_take_them(write: Write) -> None:
    file = write(
        "def f(x, /, n=1, *, s): return x[n:] * s\ndef g(*args, **rest): return rest['n']\n"
    )
    given = tuple(parse_argument(a) for a in ("x=float32[4]@cuda", "n=2", "s=3", "unused=1"))
    assert run(f"{file}::f", arguments=given).findings == ()
    assert run(f"{file}::g", arguments=given).findings == ()
    with pytest.raises(UsageError, match="f needs x, s"):
        run(f"{file}::f")


@pytest.mark.parametrize(
    ("text", "target", "sentence"),
    [
        ("def captured(): raise KeyError('a')\n", "", "captured raises KeyError"),
        ("raise ValueError('b')\n", "", "the body of"),
        ("import no_such_package\n", "", "imports no_such_package"),
        ("def f(): pass\n", "", "no function whose name begins with"),
        ("def f(): pass\n", "::g", "there is no function g"),
        ("raise SystemExit(0)\n", "", "the body of"),
        ("def captured(): raise SystemExit(1)\n", "", "captured raises SystemExit"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(
    text: str, target: str, sentence: str, write: Write
) -> None:
    with pytest.raises(CannotDo, match=sentence):
        run(write(text) + target)


KERNELS = (
    "import triton\n"
    "import triton.language as tl\n"
    "from no_such_package.ops import fast_norm, Config\n"
    "@triton.autotune(configs=[triton.Config({'B': 1})], key=['n'])\n"
    "@triton.jit\n"
    "def kernel(x, n, B: tl.constexpr): pass\n"
    "def captured():\n"
    "    y = torch.empty_like(X)\n"
    "    kernel[(triton.cdiv(4, 2),)](y, 4)\n"
    "    fast_norm(y)\n"
    "    y[0] = 1\n"
    "    return y\n"
)


def test_what_is_not_installed_can_be_stood_in_for_and_is_listed(write: Write) -> None:
    result = run(write(KERNELS), stubs=("no_such_package",))
    assert rules(result) == [("pageable_copy", 13)]
    assert result.covered.unknown == ("kernel kernel", "call of fast_norm")
    assert "no_such_package" not in sys.modules


def test_a_stand_in_for_an_operator_is_looked_into(write: Write, tmp_path: Path) -> None:
    file = write("def captured(): return torch.ops.capdoctor_t.norm(X)\n")
    (tmp_path / "stand.py").write_text(
        "import torch\ndef norm(x: torch.Tensor) -> torch.Tensor:\n    return x / x.sum().item()\n"
    )
    result = run(file)
    assert result.findings == ()
    assert result.covered.unknown == ("operator capdoctor_t::norm (not installed)",)
    result = run(file, operators=(("capdoctor_t::norm", f"{tmp_path / 'stand.py'}::norm"),))
    assert [(f.rule, f.line, f.function) for f in result.findings] == [("host_read", 3, "norm")]


def test_a_result_that_a_missing_operator_would_give_needs_a_stand_in(write: Write) -> None:
    file = write("def captured(): return torch.ops.capdoctor_t.norm(X) + 1\n")
    with pytest.raises(CannotDo) as error:
        run(file)
    assert "--op" in error.value.hint


def test_a_stand_in_for_a_kernel_is_looked_into(write: Write, tmp_path: Path) -> None:
    file = write(
        "import triton\n"
        "@triton.jit\n"
        "def double(x, out, n, BLOCK): pass\n"
        "def captured():\n"
        "    out = torch.empty_like(X)\n"
        "    double[(1,)](X, out, 4, BLOCK=4, num_warps=2)\n"
        "    assert out.data_ptr()\n"
        "    return out\n"
    )
    (tmp_path / "stand.py").write_text(
        "def double(x, out, n):\n    out.copy_(x * 2)\n    out[0] = 1\n"
    )
    result = run(file, operators=(("double", f"{tmp_path / 'stand.py'}::double"),))
    assert [(f.rule, f.line, f.function) for f in result.findings] == [
        ("pageable_copy", 3, "double")
    ]
    assert result.covered.unknown == ()


def test_torch_still_knows_what_it_lacks(write: Write) -> None:
    file = write(
        "import torch._ops\n"
        "def captured():\n"
        "    assert callable(torch.ops.capdoctor_t.anything)\n"
        "    return torch.ops.aten.relu(X)\n"
    )
    assert run(file).covered.unknown == ()
    import torch

    assert not hasattr(torch.ops.capdoctor_t, "anything")


def test_a_file_of_a_package_is_loaded_under_its_own_name(write: Write, tmp_path: Path) -> None:
    file = write("from .shapes import N\ndef captured(): return X[:N].item()\n", "pkg_t/mod.py")
    (tmp_path / "pkg_t" / "__init__.py").write_text("")
    (tmp_path / "pkg_t" / "shapes.py").write_text("N = 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        assert rules(run(file)) == [("host_read", 4)]
    finally:
        sys.path.remove(str(tmp_path))
        for name in [name for name in sys.modules if name.partition(".")[0] == "pkg_t"]:
            del sys.modules[name]


def test_nothing_of_torch_stays_replaced(write: Write) -> None:
    import torch

    before = (torch.nn.Module.__call__, torch.cuda.Stream, torch.cuda.is_available())
    run(write("def captured(): return X + 1\n"), piecewise=True)
    assert (torch.nn.Module.__call__, torch.cuda.Stream, torch.cuda.is_available()) == before


READS = "X.sum().item()"


@pytest.mark.parametrize(
    "body",
    [
        f"async def captured():\n    return {READS}\n",
        f"def captured():\n    yield {READS}\n",
        f"async def captured():\n    yield {READS}\n",
    ],
    ids=["coroutine", "generator", "asynchronous generator"],
)
def test_a_body_that_runs_later_is_run_to_its_end(write: Write, body: str) -> None:
    assert rules(run(write(body))) == [("host_read", 4)]


def test_a_builtin_that_tells_no_parameters_is_called_with_none(write: Write) -> None:
    file = write("import functools\ncaptured = functools.partial(torch.masked_select, X, X > 0)\n")
    [finding] = run(file).findings
    assert (finding.rule, finding.line) == ("data_dependent_size", 1)
    assert finding.file.endswith("target.py")


def test_what_an_error_of_the_codes_own_left_out_is_said(write: Write) -> None:
    file = write(f"def captured():\n    {READS}\n    raise ValueError('mine')\n    X.cpu()\n")
    result = run(file)
    assert rules(result) == [("host_read", 4)]
    assert result.covered.unknown == ("what follows in captured: captured raises ValueError: mine",)
    assert run(file, stop_at_first=True).covered.unknown == ()


def test_a_file_named_like_a_loaded_module_leaves_that_module_alone(write: Write) -> None:
    import colorsys

    run(write("def captured():\n    return X + 1\n", "colorsys.py"))
    assert sys.modules["colorsys"] is colorsys


def test_the_users_line_is_told_not_one_of_pythons_library(write: Write) -> None:
    file = write("import pprint\ndef captured():\n    return pprint.pformat(X)\n")
    found = run(file).findings
    assert {(Path(finding.file).name, finding.line) for finding in found} == {("target.py", 5)}
