"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "capdoctor"
LINES_IN_A_FILE = 300
LINES_IN_A_FUNCTION = 50
LARGE = 2_000_000
# Spelled in pieces, so that this file does not contain what it looks for.
REGISTRY_HOST = re.compile(r"p[y]pi\.org|python[h]osted|registry\.[n]pmjs|deb\.[d]ebian")
MACHINE_PATH = re.compile(r"/wor[k]/|(?<!\w)\.librar[y]\b")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [
        ROOT / name.decode()
        for name in listed.split(b"\0")
        if name and (ROOT / name.decode()).is_file()
    ]


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_source_file_stays_small_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LINES_IN_A_FILE
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the first line says the purpose"
    assert list(long_functions(tree)) == []


def long_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > LINES_IN_A_FUNCTION:
                yield f"{node.name} ({size} lines)"


def test_no_file_names_a_registry_host_or_a_machine_path() -> None:
    named = [
        name
        for path in tracked()
        if path.stat().st_size < LARGE
        and names_what_it_must_not(name := str(path.relative_to(ROOT)), path)
    ]
    assert named == []


def names_what_it_must_not(name: str, path: Path) -> bool:
    text = path.read_text(errors="replace")
    # The path of a public build machine in a crash log is part of the log.
    machine = None if name.startswith("tests/data/") else MACHINE_PATH.search(text)
    return bool(machine or REGISTRY_HOST.search(text))


def test_nothing_is_left_over() -> None:
    leftover = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b|raise NotImplemented" r"Error")
    found = [str(path.relative_to(ROOT)) for path in sources() if leftover.search(path.read_text())]
    assert found == []
