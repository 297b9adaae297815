"""Find and load single source files of a project's tree, without importing the project."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from capdoctor.capture.checker.stubs import StubModule, installed
from capdoctor.capture.scenarios.outcome import CannotExercise, NotApplicable


def package_folder(source: Path, package: str) -> Path:
    """Give the package's folder for a checkout, a site-packages folder or the folder itself.

    Raises:
        NotApplicable: the tree holds no such package.
    """
    for folder in (source / package, source / "src" / package, source):
        if folder.name == package and folder.is_dir():
            return folder
    raise NotApplicable(f"there is no package {package} in {source}")


def parsed(path: Path) -> ast.Module:
    """Give the syntax tree of a source file.

    Raises:
        CannotExercise: the file is no Python.
    """
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        text = f"{path} is not Python that this interpreter reads: {error}"
        raise CannotExercise(text) from error


def load(path: Path, name: str, torch: Any, stubs: Mapping[str, ModuleType]) -> ModuleType:
    """Run one source file as the module ``name``, and give it.

    The file sees ``torch``, the given stubs, and stand-ins for everything else that it imports
    and that is not installed (or belongs to its own package).
    """
    tree = parsed(path)
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    standing = _stand_ins(tree, name, stubs)
    with installed({**standing, **stubs, "torch": torch, name: module}):
        exec(compile(tree, str(path), "exec"), module.__dict__)  # noqa: S102 - the file under test
    return module


def _stand_ins(
    tree: ast.Module, name: str, given: Mapping[str, ModuleType]
) -> dict[str, ModuleType]:
    own = name.partition(".")[0]
    found: dict[str, ModuleType] = {}
    for wanted in _imported(tree, name.rpartition(".")[0]):
        root = wanted.partition(".")[0]
        if wanted in given or root == "torch" or (root != own and _is_installed(root)):
            continue
        found[wanted] = StubModule(wanted)
    return found


def _is_installed(root: str) -> bool:
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Give the dotted names of every module that the file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            dotted = ".".join(part for part in (base, node.module or "") if part)
            if dotted and dotted != "__future__":
                yield dotted


def function_of(path: Path, name: str) -> ast.FunctionDef | None:
    """Give the definition of a top-level function of a file, or None."""
    if not path.is_file():
        return None
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


def define(function: ast.FunctionDef, path: Path, names: dict[str, Any]) -> Any:
    """Define one function of a real file, in a namespace of the caller's."""
    future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0, lineno=1, col_offset=0)
    stripped = ast.Module([future, _undecorated(function)], [])
    exec(compile(ast.fix_missing_locations(stripped), str(path), "exec"), names)  # noqa: S102
    return names[function.name]


def _undecorated(function: ast.FunctionDef) -> ast.FunctionDef:
    function.decorator_list = []
    return function
