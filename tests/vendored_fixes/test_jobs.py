"""Several fixes and targets in one call: all are found before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.jobs import find_jobs
from tests.helpers.fix_cases import Case


@pytest.fixture
def trees(make_tree: Callable[..., Path], sparse_case: Case, fold_case: Case) -> tuple[str, str]:
    return str(make_tree(sparse_case, name="one")), str(make_tree(fold_case, name="two"))


def test_no_names_mean_every_fix_and_absent_packages_do_not_apply(trees: tuple[str, str]) -> None:
    jobs = find_jobs([], trees)
    seen = [(job.fix.id, job.target is not None) for job in jobs]
    assert seen == [
        ("fold-indptr", False),
        ("sparse-mla", True),
        ("fold-indptr", True),
        ("sparse-mla", False),
    ]
    absent = jobs[0].absent
    assert absent is not None
    assert absent.status_after is FixStatus.NOT_APPLICABLE
    assert "no package aiter" in absent.reason
    assert not any(job.named for job in jobs)
    assert find_jobs(["sparse-mla"], trees[:1])[0].named


def test_a_named_fix_whose_package_is_absent_is_an_error(trees: tuple[str, str]) -> None:
    with pytest.raises(CannotDo, match="no package aiter"):
        find_jobs(["sparse-mla", "fold-indptr"], trees[:1])


def test_a_target_without_any_package_is_an_error(trees: tuple[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CannotDo, match="There is no package"):
        find_jobs([], [trees[0], str(empty)])


def test_names_and_targets_count_once(trees: tuple[str, str]) -> None:
    assert len(find_jobs(["sparse-mla", "sparse-mla"], [trees[0], trees[0]])) == 1


def test_an_unknown_fix_is_a_wrong_command_line(trees: tuple[str, str]) -> None:
    with pytest.raises(UsageError):
        find_jobs(["sparse"], trees)
