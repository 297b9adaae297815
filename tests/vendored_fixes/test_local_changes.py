"""A file with local changes in a git checkout is refused; everything else in one is not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.local_changes import changed_files
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.targets import Target, find_target
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import snapshot

FIX = find_fix("sparse-mla")
GROUP = "vllm/v1/attention/backends/mla/index_group.py"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(make_tree: Callable[..., Path], sparse_case: Case) -> Path:
    root = make_tree(sparse_case, record=False, name="checkout")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


@pytest.fixture
def target(checkout: Path) -> Target:
    return find_target(str(checkout), FIX)


def test_a_clean_checkout_is_changed_and_reverted(checkout: Path, target: Target) -> None:
    before = snapshot(checkout / "vllm")
    assert apply(FIX, target).status_after is FixStatus.FIXED
    revert(FIX, target)
    assert snapshot(checkout / "vllm") == before
    assert changed_files([checkout / GROUP]) == []


@pytest.mark.parametrize("staged", [False, True])
def test_local_changes_are_refused_unless_allowed(
    checkout: Path, target: Target, staged: bool
) -> None:
    path = checkout / GROUP
    path.write_bytes(path.read_bytes() + b"# mine\n")
    if staged:
        git(checkout, "add", ".")
    before = snapshot(checkout / "vllm")
    with pytest.raises(CannotDo, match=r"index_group\.py has local changes") as caught:
        apply(FIX, target)
    assert "--allow-dirty" in caught.value.hint
    assert snapshot(checkout / "vllm") == before
    assert apply(FIX, target, allow_dirty=True).status_after is FixStatus.FIXED
    revert(FIX, target)
    assert snapshot(checkout / "vllm") == before


def test_changes_in_other_files_do_not_matter(checkout: Path, target: Target) -> None:
    (checkout / "vllm" / "__init__.py").write_text("# mine\n")
    assert apply(FIX, target).status_after is FixStatus.FIXED


def test_an_untracked_install_inside_a_checkout_is_no_local_change(
    make_tree: Callable[..., Path], sparse_case: Case
) -> None:
    site = make_tree(sparse_case)
    git(site.parent, "init", "-q")
    assert apply(FIX, find_target(str(site), FIX)).status_after is FixStatus.FIXED


def test_the_checkouts_own_programs_are_not_run(checkout: Path, target: Target) -> None:
    trap = checkout / "ran"
    (checkout / ".git" / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {trap}; false\n"
    )
    apply(FIX, target)
    assert not trap.exists()


def test_a_checkout_that_git_cannot_read_is_named(checkout: Path, target: Target) -> None:
    (checkout / ".git" / "HEAD").unlink()
    with pytest.raises(CannotDo, match="git cannot say whether"):
        apply(FIX, target)


def test_a_checkout_without_git_is_named(
    target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotDo, match="there is no git to ask"):
        apply(FIX, target)
    assert apply(FIX, target, allow_dirty=True).status_after is FixStatus.FIXED
