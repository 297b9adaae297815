"""Fixes are found by walking folders; a bad name or bad metadata has its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor import vendored_fixes
from capdoctor.errors import CannotDo, UsageError
from capdoctor.vendored_fixes.catalogue import find_fix, list_fixes

GOOD = (Path(vendored_fixes.__file__).parent / "_template" / "fix.toml").read_text()


def test_the_bundled_fixes_are_there_in_order() -> None:
    assert [fix.id for fix in list_fixes()] == ["fold-indptr", "sparse-mla"]


@pytest.mark.parametrize("name", ["sparse-mla", "sparse_mla", " SPARSE-MLA "])
def test_a_name_is_found_in_every_spelling(name: str) -> None:
    assert find_fix(name).id == "sparse-mla"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sparse-mlaa", "Did you mean sparse-mla?"), ("zzz", "There are: fold-indptr")],
)
def test_an_unknown_name_is_answered_with_an_offer(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no bundled fix") as caught:
        find_fix(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD.replace('id = "template"', ""), "id"),
        (GOOD + 'colour = "red"\n', "unknown field 'colour'"),
        (GOOD.replace('version = "1"', "version = 1"), "'version' is neither text"),
        ("id = ", "Invalid value"),
    ],
)
def test_bad_metadata_names_the_file_and_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "fix.toml").write_text(text)
    monkeypatch.setattr(vendored_fixes, "__path__", [str(tmp_path)])
    with pytest.raises(CannotDo, match="cannot be used") as caught:
        list_fixes()
    assert why in caught.value.sentence
    assert str(tmp_path / "room") in caught.value.sentence
