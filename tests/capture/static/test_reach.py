"""Which functions of a tree a capture may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.capture.static import scan
from capdoctor.model import Candidate

SYNC = "    return x.tolist()\n"


def tree(folder: Path, files: dict[str, str]) -> list[Candidate]:
    for name, text in files.items():
        path = folder / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n" + text)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()
    return list(scan(folder / "pkg").candidates)


def grades(items: list[Candidate]) -> list[tuple[str, str]]:
    return [(item.certainty, item.function) for item in items]


MODEL = (
    "import torch.nn as nn\n"
    "from pkg.ops.convert import to_list\n"
    "class Model(nn.Module):\n"
    "    def forward(self, x: torch.Tensor):\n"
    "        return self.step(x)\n"
    "    def step(self, x):\n"
    "        return to_list(x)\n"
)
CONVERT = "def to_list(x: torch.Tensor):\n" + SYNC


def test_a_call_is_followed_through_methods_and_files(tmp_path: Path) -> None:
    (item,) = tree(tmp_path, {"model.py": MODEL, "ops/convert.py": CONVERT})
    assert (item.certainty, item.file, item.function) == ("likely", "ops/convert.py", "to_list")
    assert item.why == "by annotation; called from Model.forward"


def test_a_re_export_is_followed(tmp_path: Path) -> None:
    model = MODEL.replace("pkg.ops.convert", "pkg.ops")
    files = {"model.py": model, "ops/convert.py": CONVERT, "ops/__init__.py": ""}
    (tmp_path / "pkg" / "ops").mkdir(parents=True)
    items = tree(tmp_path, files | {"ops/__init__.py": "from .convert import to_list\n"})
    assert grades(items) == [("likely", "to_list")]


def test_an_inherited_method_is_followed(tmp_path: Path) -> None:
    base = "class Base:\n    def run(self, x: torch.Tensor):\n    " + SYNC
    child = (
        "from pkg.base import Base\n"
        "class Child(Base):\n"
        "    def forward(self, x: torch.Tensor):\n"
        "        return self.run(x)\n"
    )
    assert grades(tree(tmp_path, {"base.py": base, "child.py": child})) == [("likely", "Base.run")]


def test_what_only_set_up_calls_is_left_out(tmp_path: Path) -> None:
    layer = (
        "from pkg.convert import to_list\n"
        "def process_weights_after_loading(x):\n"
        "    return to_list(x)\n"
    )
    assert tree(tmp_path, {"layer.py": layer, "convert.py": CONVERT}) == []


@pytest.mark.parametrize(
    ("name", "text", "grade"),
    [
        ("ops.py", "def norm(x: torch.Tensor):\n" + SYNC, "possible"),
        ("ops.py", "def norm(x: torch.Tensor, device: torch.device):\n" + SYNC, "possible"),
        ("ops.py", "def run(k, x: torch.Tensor):\n    k[(1,)](x)\n" + SYNC, "possible"),
        (
            "ops.py",
            "@tl.custom_op('a::b')\ndef norm(x: torch.Tensor):\n" + SYNC,
            "likely",
        ),
        (
            "ops.py",
            "def norm(x: torch.Tensor):\n"
            + SYNC
            + "direct_register_custom_op('n', op_func=norm)\n",
            "likely",
        ),
        ("ops.py", "def captured_it(x: torch.Tensor):\n" + SYNC, "likely"),
        (
            "ops.py",
            "class MyLinearMethod(Base):\n    def apply(self, x: torch.Tensor):\n    " + SYNC,
            "likely",
        ),
        ("ops.py", "def load_weights(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "def norm_ref(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "def _warmup_norm(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "@triton.jit\ndef kernel(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "@eager_break_during_capture\ndef f(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "@tl.register_fake('a::b')\ndef f(x: torch.Tensor):\n" + SYNC, None),
        ("ops.py", "@torch.jit.script\ndef f(x: torch.Tensor):\n" + SYNC, "possible"),
        ("tests/ops.py", "def norm(x: torch.Tensor):\n" + SYNC, None),
        ("benchmarks/bench_ops.py", "def norm(x: torch.Tensor):\n" + SYNC, None),
        ("vision/ops.py", "def norm(x: torch.Tensor):\n" + SYNC, "weak"),
        ("ops.py", "def prefill_norm(x: torch.Tensor):\n" + SYNC, "weak"),
        ("ops.py", "def norm(x: torch.Tensor, pixel_values):\n" + SYNC, "weak"),
        ("ops.py", "def _nobody_calls_it(x: torch.Tensor):\n" + SYNC, "weak"),
        ("ops.py", "@functools.cache\ndef norm(x: torch.Tensor):\n" + SYNC, "weak"),
    ],
)
def test_a_function_counts_by_what_it_is(
    name: str, text: str, grade: str | None, tmp_path: Path
) -> None:
    items = tree(tmp_path, {name: text, "other.py": "X = 1\n"})
    assert [item.certainty for item in items] == ([grade] if grade else [])


def test_the_surest_comes_first(tmp_path: Path) -> None:
    items = tree(
        tmp_path,
        {
            "a_vision.py": "def norm(x: torch.Tensor):\n" + SYNC,
            "b.py": "def norm(x: torch.Tensor):\n" + SYNC,
            "z.py": "def captured(x: torch.Tensor):\n" + SYNC,
        },
    )
    assert [item.certainty for item in items] == ["likely", "possible", "weak"]


def test_recursion_ends(tmp_path: Path) -> None:
    text = (
        "def a(x: torch.Tensor):\n    return b(x)\n"
        "def b(x: torch.Tensor):\n    x.tolist()\n    return a(x)\n"
        "def captured(x: torch.Tensor):\n    return a(x)\n"
    )
    assert grades(tree(tmp_path, {"m.py": text})) == [("likely", "b")]
