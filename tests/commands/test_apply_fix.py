from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import has_torch
from tests.helpers.command_line import answer, assert_refused, capdoctor

FAULTY = '''"""Folding."""

import torch


def _fold_seqlen_indptr(indptr, fold_factor):
    lens = (indptr[1:] - indptr[:-1]).repeat_interleave(fold_factor)
    out = torch.empty(lens.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[0] = 0  # the leading zero
    out[1:] = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return out
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree that holds the fault."""
    package = tmp_path / "src" / "aiter"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "mla.py").write_text(FAULTY)
    return tmp_path / "src"


def test_the_fixes_are_listed_without_loading_what_rewrites() -> None:
    done = capdoctor("apply-fix", "--list", "--json")
    fixes = {fix["id"]: fix for fix in answer(done)["fixes"]}
    assert done.returncode == 0
    assert {"sparse-mla", "fold-indptr"} <= set(fixes)
    code = (
        "import sys; sys.argv = ['capdoctor', 'apply-fix', '--list']\n"
        "from capdoctor.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('libcst' in sys.modules, 'torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.endswith("False False\n")


def test_check_is_exit_1_while_something_is_vulnerable_and_changes_nothing(tree: Path) -> None:
    done = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--check", "--json")
    found = answer(done)
    assert (done.returncode, found["schema"]) == (1, "capdoctor.fix/1")
    (result,) = found["results"]
    assert (result["status_before"], result["status_after"]) == ("vulnerable", "vulnerable")
    assert result["sites"][0]["function"] == "_fold_seqlen_indptr"
    assert (tree / "aiter/mla.py").read_text() == FAULTY


def test_a_file_that_cannot_be_read_is_not_taken_for_a_clean_one(tree: Path) -> None:
    (tree / "aiter/mla.py").write_text(FAULTY + "def broken(:\n")
    done = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--check", "--json")
    assert (done.returncode, answer(done)["results"][0]["status_after"]) == (1, "unreadable")


def test_diff_shows_the_change_and_writes_nothing(tree: Path) -> None:
    done = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--diff")
    assert done.returncode == 1
    assert "-    out[0] = 0" in done.stdout
    assert (tree / "aiter/mla.py").read_text() == FAULTY


def test_apply_and_revert_give_the_exact_bytes_back(tree: Path) -> None:
    applied = capdoctor("apply", "fold-indptr", "--target", tree, "--json")
    (result,) = answer(applied)["results"]
    assert (applied.returncode, result["status_after"]) == (0, "fixed")
    assert result["changed_files"] == ["aiter/mla.py"]
    assert not Path(result["backup"]).is_relative_to(tree)
    assert capdoctor("apply-fix", "fold-indptr", "--target", tree, "--check").returncode == 0
    reverted = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--revert")
    assert reverted.returncode == 0
    assert (tree / "aiter/mla.py").read_text() == FAULTY


@pytest.mark.skipif(not has_torch(), reason="a scenario runs on the virtual device: needs torch")
def test_verify_runs_the_scenario_of_the_fix(tree: Path) -> None:
    done = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--verify", "--json")
    assert (done.returncode, answer(done)["results"][0]["verified"]) == (0, "passed")


def test_an_unnamed_fix_whose_package_is_absent_does_not_apply(tree: Path) -> None:
    found = answer(capdoctor("apply-fix", "--target", tree, "--check", "--json"))
    status = {result["fix"]: result["status_after"] for result in found["results"]}
    assert status == {"fold-indptr": "vulnerable", "sparse-mla": "not_applicable"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-fix"],
        ["--check", "--revert"],
        ["--check", "--diff"],
        ["fold-indptr", "--check", "--verify"],
        ["fold-indptr", "--revert", "--verify"],
    ],
)
def test_a_command_line_that_cannot_be_meant_is_exit_2(arguments: list[str], tree: Path) -> None:
    assert_refused(capdoctor("apply-fix", *arguments, "--target", tree), 2)
    assert (tree / "aiter/mla.py").read_text() == FAULTY


@pytest.mark.parametrize("target", ["no-such-place", "/etc/passwd"])
def test_a_target_that_is_none_is_exit_3(target: str) -> None:
    assert_refused(capdoctor("apply-fix", "fold-indptr", "--target", target, "--json"), 3)


def test_a_revert_without_a_backup_says_so(tree: Path) -> None:
    assert_refused(capdoctor("apply-fix", "fold-indptr", "--target", tree, "--revert"), 3)


def test_escapes_in_a_source_do_not_reach_the_terminal(tree: Path) -> None:
    path = tree / "aiter/mla.py"
    path.write_text(FAULTY.replace("# the leading zero", "# \x1b]0;pwned\x07"))
    for option in ("--diff", "--check"):
        done = capdoctor("apply-fix", "fold-indptr", "--target", tree, option)
        assert "\x1b" not in done.stdout + done.stderr
    assert json.loads(
        capdoctor("apply-fix", "fold-indptr", "--target", tree, "--diff", "--json").stdout
    )


def test_of_several_targets_none_is_changed_when_one_is_refused(tree: Path, tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shutil.copytree(tree, shut)
    for path in [shut / "aiter", shut / "aiter/mla.py"]:
        path.chmod(path.stat().st_mode & ~0o222)
    done = capdoctor("apply-fix", "fold-indptr", "--target", tree, "--target", shut, "--json")
    assert_refused(done, 3)
    assert "read-only" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert (tree / "aiter/mla.py").read_text() == FAULTY


def test_what_was_done_before_a_late_refusal_is_said(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tree, other)
    for folder in (tree, other):
        assert capdoctor("apply-fix", "fold-indptr", "--target", folder).returncode == 0
    (other / "aiter/mla.py").write_text("# edited since\n")
    both = ("--target", tree, "--target", other)
    done = capdoctor("apply-fix", "fold-indptr", *both, "--revert")
    assert_refused(done, 3)
    assert "upgraded or edited since" in done.stderr
    assert f"Already changed by this call: fold-indptr in {tree / 'aiter'}" in done.stderr
    assert (tree / "aiter/mla.py").read_text() == FAULTY
