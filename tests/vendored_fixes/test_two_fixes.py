"""Two fixes in one package: each its own entry, taken out in the right order, one RECORD."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor import vendored_fixes
from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.targets import Target, find_target
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import record_row, snapshot, write

ROOMS = Path(vendored_fixes.__file__).parent
SPARSE = find_fix("sparse-mla")
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
IDLE = b"\n\ndef stream_is_idle(stream):\n    return stream.query()\n"


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FixInfo:
    """The template as a fix of vllm."""
    room = tmp_path / "rooms" / "second_fix"
    shutil.copytree(ROOMS / "_template", room)
    text = (room / "fix.toml").read_text()
    for old, new in (("template", "second-fix"), ("somepackage", "vllm"), ("some-package", "vllm")):
        text = text.replace(old, new)
    (room / "fix.toml").write_text(text)
    monkeypatch.setattr(vendored_fixes, "__path__", [*vendored_fixes.__path__, str(room.parent)])
    return find_fix("second-fix")


@pytest.fixture
def in_the_same_file(make_tree: Callable[..., Path], sparse_case: Case) -> Target:
    before = {**sparse_case.before, GROUP: sparse_case.before[GROUP] + IDLE}
    case = Case(sparse_case.path, "", "", None, before, {})
    return find_target(str(make_tree(case)), SPARSE)


@pytest.fixture
def in_another_file(make_tree: Callable[..., Path], sparse_case: Case) -> Target:
    before = {**sparse_case.before, "vllm/streams.py": IDLE}
    case = Case(sparse_case.path, "", "", None, before, {})
    return find_target(str(make_tree(case)), SPARSE)


def test_the_later_one_must_go_first_where_they_touch_the_same_file(
    in_the_same_file: Target, second: FixInfo
) -> None:
    site = in_the_same_file.folder.parent
    before = snapshot(site)
    apply(SPARSE, in_the_same_file)
    between = snapshot(site)
    assert apply(second, in_the_same_file).status_after is FixStatus.FIXED
    with pytest.raises(CannotDo, match="second-fix was put in over sparse-mla"):
        revert(SPARSE, in_the_same_file)
    revert(second, in_the_same_file)
    assert snapshot(site) == between
    revert(SPARSE, in_the_same_file)
    assert snapshot(site) == before


def test_any_order_will_do_where_they_share_only_the_record(
    in_another_file: Target, second: FixInfo
) -> None:
    site = in_another_file.folder.parent
    before = snapshot(site)
    apply(SPARSE, in_another_file)
    apply(second, in_another_file)
    assert revert(SPARSE, in_another_file).status_after is FixStatus.VULNERABLE
    rows = next(site.glob("*.dist-info/RECORD")).read_text().splitlines()
    for name in (GROUP, "vllm/streams.py"):
        assert record_row(site, site / name) in rows
    revert(second, in_another_file)
    assert snapshot(site) == before


def test_a_fix_that_an_editor_undid_can_be_put_in_again(in_another_file: Target) -> None:
    site = in_another_file.folder.parent
    old = (site / GROUP).read_bytes()
    apply(SPARSE, in_another_file)
    write(site / GROUP, old)
    result = apply(SPARSE, in_another_file)
    assert result.status_before is FixStatus.PARTLY_FIXED
    assert result.changed_files == (GROUP,)
