"""The three forms of a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.capture.checker.target import Target, parse_target
from capdoctor.errors import CannotDo, UsageError


def test_a_file_and_its_functions(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("")
    assert parse_target(str(file)) == Target(str(file), file, None, None)
    assert parse_target(f"{file}::f") == Target(f"{file}::f", file, None, "f")
    assert parse_target(f"{file}::C.f").function == "C.f"


def test_an_importable_function() -> None:
    assert parse_target("json.tool:main") == Target("json.tool:main", None, "json.tool", "main")


@pytest.mark.parametrize("text", ["", "json", "json:", ":main", "FOLDER", "model"])
def test_another_form_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text)


@pytest.mark.parametrize("text", ["absent.py", "absent.py::f", "no_such_package_at_all:f"])
def test_what_is_not_there_cannot_be_checked(text: str) -> None:
    with pytest.raises(CannotDo):
        parse_target(text)


def test_a_file_without_its_function_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    with pytest.raises(UsageError):
        parse_target(f"{tmp_path / 'model.py'}::")
