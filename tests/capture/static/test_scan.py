"""Trees and files, readable and not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.capture.static import scan
from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.read_file import read_source
from capdoctor.capture.static.scan import module_name
from capdoctor.errors import CannotDo

BAD = "import torch\ndef captured(x: torch.Tensor):\n    return x.item()\n"
ROOT = Path(__file__).resolve().parents[3]


def test_a_file_that_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(BAD)
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n")
    (tmp_path / "null.py").write_bytes(b"torch\x00")
    (tmp_path / "gone.py").symlink_to(tmp_path / "absent.py")
    result = scan(tmp_path)
    assert [item.file for item in result.candidates] == ["good.py"]
    assert {line.partition(":")[0] for line in result.unreadable} == {
        "broken.py",
        "null.py",
        "gone.py",
    }
    assert (result.files, result.functions) == (4, 1)


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    for name in (".venv", "node_modules", "__pycache__", "build"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(BAD)
    (tmp_path / "m.py").write_text(BAD)
    assert scan(tmp_path).files == 1


def test_one_file_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(t):\n    import torch\n    torch.cuda.synchronize()\n")
    (item,) = scan(tmp_path / "m.py").candidates
    assert (item.file, item.line, item.why) == ("m.py", 3, "by inference; its file was named")


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_nothing_to_read_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CannotDo):
        scan(tmp_path / name)


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    for number in range(210):
        (tmp_path / f"m{number}.py").write_text(BAD)
    one, two = scan(tmp_path, workers=1), scan(tmp_path, workers=2)
    assert len(one.candidates) == 210
    assert one == two


def test_the_module_name_begins_at_the_outermost_package(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in ("a", "a/b"):
        (tmp_path / folder / "__init__.py").touch()
    assert module_name(tmp_path / "a" / "b" / "c.py") == "a.b.c"
    assert module_name(tmp_path / "a" / "b" / "__init__.py") == "a.b"
    assert module_name(tmp_path / "c.py") == "c"


@pytest.mark.parametrize("path", sorted((ROOT / "capdoctor" / "capture").glob("*.py")), ids=str)
def test_the_fast_walk_sees_what_the_slow_one_sees(path: Path) -> None:
    tree = ast.parse(path.read_text())
    skipped = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)
    slow = [id(node) for node in ast.walk(tree) if not isinstance(node, skipped)]
    fast = [id(node) for node in nodes_of(tree) if not isinstance(node, skipped)]
    assert sorted(fast) == sorted(slow)


@settings(deadline=None)  # the machine's load is not the reader's
@given(st.text(max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    read_source("import torch\n" + text, "m.py", "m")


EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "self", "x.shape", "0", "None", "'cuda'", "torch", "..."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]})[{p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}, *{p[1]})"),
        st.tuples(
            inner, st.sampled_from(["item", "to", "view", "max", "new_zeros", "nonzero"])
        ).map(lambda p: f"({p[0]}).{p[1]}"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]})({p[1]}, device={p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"[{p[0]} for x in {p[1]} if {p[0]} > {p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"(y := {p[0]}) if {p[1]} else torch.where({p[0]})"),
    ),
    max_leaves=8,
)


@settings(deadline=None)  # the machine's load is not the reader's
@given(EXPRESSIONS, EXPRESSIONS)
def test_no_expression_breaks_the_reader(first: str, second: str) -> None:
    source = (
        f"import torch\ndef f(self, x: torch.Tensor):\n    y = {first}\n    y[{second}] = {first}\n"
    )
    try:
        ast.parse(source)
    except SyntaxError:
        return
    assert read_source(source, "m.py", "m").unreadable == ""


def test_it_needs_no_torch() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from capdoctor.capture.static import scan\n"
        "print(len(scan(Path(sys.argv[1])).candidates) >= 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT / "capdoctor" / "model")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr
