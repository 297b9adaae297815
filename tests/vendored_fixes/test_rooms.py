"""One set of tests over all rooms: what a fix says about itself, and every one of its cases."""

from __future__ import annotations

import io
import re
import shutil
import tokenize
from pathlib import Path

import pytest

from capdoctor import vendored_fixes
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix, list_fixes, load_room
from capdoctor.vendored_fixes.contract import REPAIRED, FixInfo
from capdoctor.vendored_fixes.proving import proven_change
from tests.helpers.fix_cases import Case, cases_of

ROOMS = Path(vendored_fixes.__file__).parent
FIXES = list_fixes()
CASES = [
    pytest.param(fix, case, id=f"{fix.room}-{case.path.stem}")
    for fix in FIXES
    for case in cases_of(ROOMS / fix.room)
]
CHANGING = [param for param in CASES if isinstance(c := param.values[1], Case) and c.changes]


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.id)
def test_a_room_says_everything_that_a_reader_needs(fix: FixInfo) -> None:
    for name in ("title", "repairs", "introduced_by", "fixed_in", "retire_when", "scenario"):
        assert getattr(fix, name).strip(), name
    assert re.match(r"https://github\.com/.+/pull/\d+\Z", fix.upstream_pull)
    assert fix.id == fix.room.replace("_", "-")
    assert all(name.startswith(f"{fix.package}/") for name in (*fix.homes, *fix.also_read))
    readme = (ROOMS / fix.room / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# {fix.id}\n")


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.id)
def test_a_room_proves_changes_refusals_and_every_kind_of_status(fix: FixInfo) -> None:
    cases = cases_of(ROOMS / fix.room)
    assert {case.before_status for case in cases} == {str(status) for status in FixStatus}
    assert all(case.changes == case.before_status.startswith(("vuln", "partly")) for case in cases)
    assert len({case.text for case in cases}) == len(cases)


@pytest.mark.parametrize(("fix", "case"), CASES)
def test_the_status_is_decided_from_the_code(fix: FixInfo, case: Case) -> None:
    reading = load_room(fix).read(case.before)
    assert str(reading.status) == case.before_status
    assert reading.sites or reading.reason, "an answer says why"
    assert all(site.reason for site in reading.sites)


@pytest.mark.parametrize(("fix", "case"), CASES)
def test_a_case_has_a_marker_so_that_the_cheap_look_finds_it(fix: FixInfo, case: Case) -> None:
    if case.changes:
        markers = [marker.encode() for marker in fix.markers]
        for name in case.after:
            found = any(marker in case.before[name] for marker in markers)
            assert found or name in fix.also_read


@pytest.mark.parametrize(("fix", "case"), CHANGING)
def test_the_change_is_exactly_the_expected_one(fix: FixInfo, case: Case) -> None:
    assert proven_change(fix, load_room(fix), case.before) == case.after


@pytest.mark.parametrize(("fix", "case"), CHANGING)
def test_afterwards_the_tree_is_fixed_and_a_second_run_changes_nothing(
    fix: FixInfo, case: Case
) -> None:
    room = load_room(fix)
    merged = {**case.before, **case.after}
    reading = room.read(merged)
    assert str(reading.status) == case.after_status
    assert reading.status in REPAIRED
    assert room.rewrite(merged) == {}


@pytest.mark.parametrize(("fix", "case"), CHANGING)
def test_every_comment_and_blank_line_stays_in_order(fix: FixInfo, case: Case) -> None:
    del fix
    for name, after in case.after.items():
        before = case.before[name]
        kept = iter(comments(after))
        assert all(comment in kept for comment in comments(before)), name
        assert blank_lines(after) >= blank_lines(before)


@pytest.mark.parametrize(
    ("fix", "case"),
    [p for p in CASES if isinstance(c := p.values[1], Case) and not c.changes],
)
def test_what_must_stay_is_not_touched_even_when_asked(fix: FixInfo, case: Case) -> None:
    if case.before_status in {"fixed", "fixed_differently"}:
        assert load_room(fix).rewrite(case.before) == {}


def test_a_new_fix_is_a_folder_and_touches_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOMS / "_template", tmp_path / "waits_for_events")
    monkeypatch.setattr(
        vendored_fixes, "__path__", [*vendored_fixes.__path__, str(tmp_path)], raising=True
    )
    assert [fix.id for fix in list_fixes()] == ["fold-indptr", "sparse-mla", "template"]
    fix = find_fix("template")
    room = load_room(fix)
    changing, staying = cases_of(tmp_path / "waits_for_events")
    assert proven_change(fix, room, changing.before) == changing.after
    assert str(room.read(staying.before).status) == staying.before_status
    assert room.rewrite(staying.before) == {}


def comments(data: bytes) -> list[str]:
    tokens = tokenize.tokenize(io.BytesIO(data).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def blank_lines(data: bytes) -> int:
    return sum(1 for line in data.splitlines() if not line.strip())
