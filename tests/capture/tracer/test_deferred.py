"""What runs after a module's first import, and only after that."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from capdoctor.capture.tracer.inside.deferred import after_import

NAME = "a_module_that_comes_late"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a module that can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    file = tmp_path / f"{NAME}.py"
    file.write_text("value = 1\n")
    yield file
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = finders


def telling() -> tuple[list[int], Callable[[], object]]:
    """A list, and what adds the module's value to it."""
    seen: list[int] = []
    return seen, lambda: seen.append(sys.modules[NAME].value)


def test_it_runs_once_and_the_module_is_as_ever(module: Path) -> None:
    finders = list(sys.meta_path)
    seen, then = telling()
    after_import(NAME, then)
    found = importlib.import_module(NAME)
    importlib.reload(found)
    assert seen == [1]
    assert sys.meta_path == finders
    assert found.__spec__ is not None
    assert found.__loader__ is found.__spec__.loader
    assert type(found.__loader__).__name__ == "SourceFileLoader"
    assert found.__file__ == str(module)


def test_a_look_whether_it_is_there_is_no_import(module: Path) -> None:
    seen, then = telling()
    after_import(NAME, then)
    for _ in range(2):  # as libraries do to see what they may use
        spec = importlib.util.find_spec(NAME)
        assert spec is not None
        assert spec.origin == str(module)
        assert spec.loader is not None
        assert spec.loader.get_filename() == str(module)  # type: ignore[attr-defined]
    assert seen == []
    importlib.import_module(NAME)
    assert seen == [1]


def test_an_import_that_fails_may_be_made_again(module: Path) -> None:
    seen, then = telling()
    after_import(NAME, then)
    module.write_text("raise ValueError('not yet')\n")
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module(NAME)
    assert seen == []
    module.write_text("value = 23456\n")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert seen == [23456]


def test_a_module_that_is_not_there_stays_away(module: Path) -> None:
    module.unlink()
    seen, then = telling()
    after_import(NAME, then)
    assert importlib.util.find_spec(NAME) is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)
    assert seen == []


def test_two_that_wait_for_the_same_module_both_run(module: Path) -> None:
    assert module.exists()
    seen, then = telling()
    after_import(NAME, then)
    after_import(NAME, then)
    importlib.import_module(NAME)
    assert seen == [1, 1]
