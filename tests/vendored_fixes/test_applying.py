"""Apply and revert on a tree laid out as pip does: bytes, modes, links, RECORD, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes import disk, journal
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.shop import check, diff
from capdoctor.vendored_fixes.targets import Target, find_target
from capdoctor.vendored_fixes.transaction import refuse_read_only
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import add_metadata, as_nobody, record_row, snapshot

FIX = find_fix("sparse-mla")
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
RUNTIME = "vllm/v1/hisparse/runtime.py"
CONTEXT = "vllm/forward_context.py"
MakeTree = Callable[..., Path]


@pytest.fixture
def site(make_tree: MakeTree, sparse_case: Case) -> Path:
    return make_tree(sparse_case)


@pytest.fixture
def target(site: Path) -> Target:
    return find_target(str(site), FIX)


def test_apply_writes_what_the_case_says_and_tells_it(
    site: Path, target: Target, sparse_case: Case
) -> None:
    result = apply(FIX, target)
    assert (result.status_before, result.status_after) == (FixStatus.VULNERABLE, FixStatus.FIXED)
    assert {name: (site / name).read_bytes() for name in sparse_case.after} == sparse_case.after
    assert result.changed_files == (CONTEXT, RUNTIME, GROUP)
    assert {site_.status for site_ in result.sites} == {FixStatus.FIXED}
    assert result.version == "0.30.0.dev7"
    assert result.backup is not None
    assert not Path(result.backup).is_relative_to(site)


def test_a_second_apply_changes_nothing(site: Path, target: Target) -> None:
    apply(FIX, target)
    after = snapshot(site)
    again = apply(FIX, target)
    assert (again.status_before, again.changed_files) == (FixStatus.FIXED, ())
    assert snapshot(site) == after


def test_revert_gives_the_exact_tree_back(site: Path, target: Target) -> None:
    (site / GROUP).chmod(0o640)
    before = snapshot(site)
    apply(FIX, target)
    assert snapshot(site) != before
    result = revert(FIX, target)
    assert snapshot(site) == before
    assert (result.status_before, result.status_after) == (FixStatus.FIXED, FixStatus.VULNERABLE)
    assert result.changed_files == (CONTEXT, RUNTIME, GROUP)
    assert journal.entries(target.folder) == []


def test_check_and_diff_write_nothing_at_all(site: Path, target: Target) -> None:
    before = snapshot(site)
    assert check(FIX, target).status_before is FixStatus.VULNERABLE
    shown = diff(FIX, target).diff
    assert snapshot(site) == before
    assert not journal.state_folder().exists()
    assert f"--- a/{GROUP}" in shown
    assert "+from vllm.forward_context import in_piecewise_cudagraph" in shown


def test_the_diff_is_one_that_patch_takes(site: Path, target: Target, sparse_case: Case) -> None:
    shown = diff(FIX, target).diff
    subprocess.run(["git", "apply", "-p1", "-"], input=shown.encode(), cwd=site, check=True)
    assert {name: (site / name).read_bytes() for name in sparse_case.after} == sparse_case.after


def test_mode_owner_and_attributes_stay(site: Path, target: Target) -> None:
    path = site / GROUP
    path.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    apply(FIX, target)
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_a_linked_copy_elsewhere_keeps_the_old_bytes(site: Path, target: Target) -> None:
    """Installers share files between environments by hard links; only this one is meant."""
    shared = site.parent / "shared.py"
    os.link(site / GROUP, shared)
    old = shared.read_bytes()
    apply(FIX, target)
    assert shared.read_bytes() == old != (site / GROUP).read_bytes()


def test_a_symlink_stays_and_the_file_behind_it_is_changed(
    site: Path, target: Target, sparse_case: Case
) -> None:
    real = site.parent / "store" / "index_group.py"
    real.parent.mkdir()
    (site / GROUP).rename(real)
    (site / GROUP).symlink_to(real)
    before = snapshot(site.parent)
    result = apply(FIX, target)
    assert (site / GROUP).is_symlink()
    assert real.read_bytes() == sparse_case.after[GROUP]
    assert "is a link" in result.reason
    revert(FIX, target)
    assert snapshot(site.parent) == before


def test_stale_bytecode_goes(site: Path, target: Target) -> None:
    cache = (site / GROUP).parent / "__pycache__"
    cache.mkdir()
    stale = [cache / "index_group.cpython-311.pyc", cache / "index_group.cpython-312.opt-1.pyc"]
    other = cache / "index_group_builder.cpython-311.pyc"
    for path in [*stale, other]:
        path.write_bytes(b"old")
    apply(FIX, target)
    assert [path.exists() for path in [*stale, other]] == [False, False, True]


def test_python_runs_the_new_code_although_the_old_was_compiled(
    make_tree: MakeTree, fold_case: Case
) -> None:
    site = make_tree(fold_case)
    fix = find_fix("fold-indptr")
    source = site / "aiter" / "mla.py"
    source.write_bytes(b"torch = None\n" + source.read_bytes().replace(b"import torch\n", b"\n"))
    source.write_bytes(
        source.read_bytes().replace(b": torch.Tensor", b"").replace(b" -> torch.Tensor", b"")
    )
    ask = "import aiter.mla, inspect; print(aiter.mla._fold_seqlen_indptr.__code__.co_names)"
    command = [sys.executable, "-c", ask]
    mode = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(site)]
    subprocess.run([sys.executable, *mode], check=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    before = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    source.write_bytes(b"import torch\n" + source.read_bytes().replace(b"torch = None\n", b""))
    apply(fix, find_target(str(site), fix))
    source.write_bytes(source.read_bytes().replace(b"import torch\n", b"torch = None\n"))
    after = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "pad" not in before.stdout
    assert "pad" in after.stdout


def test_record_tells_the_truth_before_and_after(site: Path, target: Target) -> None:
    record = next(site.glob("*.dist-info/RECORD"))
    old = record.read_bytes()
    apply(FIX, target)
    rows = record.read_text().splitlines()
    for name in (CONTEXT, RUNTIME, GROUP):
        assert record_row(site, site / name) in rows
    assert len(rows) == len(old.splitlines())
    assert [r for r in rows if r not in old.decode().splitlines()] != []
    revert(FIX, target)
    assert record.read_bytes() == old


def test_a_tree_without_metadata_is_as_good(make_tree: MakeTree, sparse_case: Case) -> None:
    site = make_tree(sparse_case, record=False)
    target = find_target(str(site / "vllm"), FIX)
    before = snapshot(site)
    assert apply(FIX, target).status_after is FixStatus.FIXED
    revert(FIX, target)
    assert snapshot(site) == before


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_tree_is_refused_for_root_too(site: Path, target: Target, what: str) -> None:
    path = site / GROUP if what == "file" else (site / GROUP).parent
    mode = path.stat().st_mode
    path.chmod(0o444 if what == "file" else 0o555)
    before = snapshot(site)
    try:
        with pytest.raises(CannotDo, match="is read-only"):
            apply(FIX, target)
        assert snapshot(site) == before
        assert journal.entries(target.folder) == []
    finally:
        path.chmod(mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
@pytest.mark.parametrize(("uid", "gid", "why"), [(65534, 0, "group"), (0, 65534, "another user")])
def test_a_file_whose_owner_would_change_is_refused_before_anything_is_written(
    site: Path, target: Target, uid: int, gid: int, why: str
) -> None:
    for path in [site, *site.rglob("*")]:
        os.chown(path, uid, gid)
        path.chmod(0o777 if path.is_dir() else 0o666)
    paths = [site / GROUP]

    def work() -> list[str]:
        try:
            refuse_read_only(paths)
        except CannotDo as error:
            return [error.sentence]
        return []

    (sentence,) = as_nobody(site, work)
    assert why in sentence


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_folder_that_hands_its_group_on_keeps_the_files_group(site: Path, tmp_path: Path) -> None:
    state = tmp_path / "nobody"
    state.mkdir()
    for path in [state, site, *site.rglob("*")]:
        os.chown(path, 65534, 0)
        path.chmod(0o2755 if path.is_dir() else 0o644)

    def work() -> list[str]:
        os.environ["XDG_STATE_HOME"] = str(state)
        result = apply(FIX, find_target(str(site), FIX))
        return [str(result.status_after)]

    load_rewriting()
    assert as_nobody(tmp_path, work) == ["fixed"]
    facts = (site / GROUP).stat()
    assert (facts.st_uid, facts.st_gid) == (65534, 0)


def load_rewriting() -> None:
    """Import what a process that is not root may not be able to read any more."""
    from capdoctor.vendored_fixes.sparse_mla import context, plan

    assert context
    assert plan


def test_a_full_disk_leaves_everything_as_it_was(
    site: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(site)
    move = disk.move

    def full(source: Path, goal: Path) -> None:
        if goal.name == "index_group.py" and b"in_piecewise" in source.read_bytes():
            raise OSError(28, "No space left on device", str(goal))
        move(source, goal)

    monkeypatch.setattr(disk, "move", full)
    with pytest.raises(CannotDo, match="No space left") as caught:
        apply(FIX, target)
    assert caught.value.hint == "Everything was put back."
    assert snapshot(site) == before
    assert journal.entries(target.folder) == []


def test_an_interrupt_leaves_everything_as_it_was(
    site: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(site)
    move, moved = disk.move, []

    def interrupted(source: Path, goal: Path) -> None:
        move(source, goal)
        moved.append(goal)
        if len(moved) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(disk, "move", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply(FIX, target)
    assert snapshot(site) == before


def test_a_state_folder_that_cannot_be_written_stops_it_before_the_tree(
    site: Path, target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where a folder is needed")
    monkeypatch.setenv("XDG_STATE_HOME", str(occupied))
    before = snapshot(site)
    with pytest.raises(CannotDo, match="backup cannot be written"):
        apply(FIX, target)
    assert snapshot(site) == before


def test_an_unreadable_file_is_an_answer_and_is_left_alone(site: Path, target: Target) -> None:
    (site / GROUP).write_bytes(b"class SparseMLAIndexGroup(:  # logical_topk_ready\n")
    before = snapshot(site)
    result = apply(FIX, target)
    assert result.status_after is FixStatus.UNREADABLE
    assert result.sites[0].file == GROUP
    assert snapshot(site) == before


def test_a_folder_where_a_file_should_be_is_an_answer(site: Path, target: Target) -> None:
    (site / GROUP).unlink()
    (site / GROUP).mkdir()
    result = check(FIX, target)
    assert result.status_before is FixStatus.UNREADABLE
    assert [s.reason for s in result.sites if s.file == GROUP] == ["is a folder, not a file"]


def test_a_link_to_nothing_is_an_answer(site: Path, target: Target) -> None:
    (site / GROUP).unlink()
    (site / GROUP).symlink_to(site / "gone.py")
    result = check(FIX, target)
    assert [s.reason for s in result.sites] == ["is a link to nothing"]


def test_revert_without_a_backup_says_so(target: Target) -> None:
    with pytest.raises(CannotDo, match="no backup of sparse-mla"):
        revert(FIX, target)


def test_revert_of_every_fix_skips_those_that_were_never_put_in(target: Target) -> None:
    result = revert(FIX, target, missing_ok=True)
    assert result.status_after is FixStatus.VULNERABLE
    assert "nothing to revert" in result.reason


def test_revert_refuses_when_the_package_was_upgraded(site: Path, target: Target) -> None:
    apply(FIX, target)
    record = next(site.glob("*.dist-info/RECORD"))
    for path in record.parent.iterdir():
        path.unlink()
    record.parent.rmdir()
    (site / GROUP).write_bytes(b"# another release\n")
    add_metadata(site, "vllm", "vllm", "0.31.0")
    before = snapshot(site)
    with pytest.raises(CannotDo, match=r"upgraded from 0\.30\.0\.dev7 to 0\.31\.0"):
        revert(FIX, find_target(str(site), FIX))
    assert snapshot(site) == before


def test_revert_after_a_reinstall_of_the_same_bytes_claims_no_change(
    site: Path, target: Target
) -> None:
    before = snapshot(site)
    apply(FIX, target)
    for name, (data, _) in before.items():
        if isinstance(data, bytes):
            (site / name).write_bytes(data)
    result = revert(FIX, target)
    assert result.changed_files == ()
    assert "old bytes already" in result.reason
    assert snapshot(site) == before


def test_revert_refuses_when_a_file_was_edited(site: Path, target: Target) -> None:
    apply(FIX, target)
    path = site / RUNTIME
    path.write_bytes(path.read_bytes() + b"# mine\n")
    before = snapshot(site)
    with pytest.raises(CannotDo, match=r"runtime\.py was upgraded or edited since"):
        revert(FIX, target)
    assert snapshot(site) == before


def test_revert_refuses_when_a_file_is_gone(site: Path, target: Target) -> None:
    apply(FIX, target)
    (site / RUNTIME).unlink()
    with pytest.raises(CannotDo, match="is not there any more"):
        revert(FIX, target)


def test_a_backup_of_a_replaced_package_makes_room_for_a_new_one(
    site: Path, target: Target, sparse_case: Case
) -> None:
    apply(FIX, target)
    for name, data in sparse_case.before.items():
        (site / name).write_bytes(data + b"# rebuilt\n")
    before = snapshot(site)
    apply(FIX, target)
    assert len(journal.entries(target.folder)) == 1
    revert(FIX, target)
    changed = {n: v for n, v in snapshot(site).items() if not n.endswith("RECORD")}
    assert changed == {n: v for n, v in before.items() if not n.endswith("RECORD")}


def test_a_partly_fixed_tree_is_completed_and_reverted_to_what_it_was(
    site: Path, target: Target, sparse_case: Case
) -> None:
    (site / GROUP).write_bytes(sparse_case.after[GROUP])
    before = snapshot(site)
    result = apply(FIX, target)
    assert result.status_before is FixStatus.PARTLY_FIXED
    assert result.changed_files == (CONTEXT, RUNTIME)
    revert(FIX, target)
    assert snapshot(site) == before


def test_a_manifest_says_what_was_done(site: Path, target: Target) -> None:
    result = apply(FIX, target)
    (entry,) = journal.entries(target.folder)
    assert str(entry.folder) == result.backup
    assert (entry.fix, entry.fix_version, entry.version) == ("sparse-mla", "1", "0.30.0.dev7")
    assert entry.time.endswith("+00:00")
    for change in entry.changes:
        data = Path(change.path).read_bytes()
        assert journal.digest(data) == change.after != change.before
    assert [change.is_record for change in entry.changes] == [False, False, False, True]


def test_a_damaged_manifest_is_named(target: Target) -> None:
    result = apply(FIX, target)
    (Path(str(result.backup)) / "manifest.json").write_text("{")
    with pytest.raises(CannotDo, match=r"manifest\.json cannot be understood"):
        revert(FIX, target)
