"""Two calls on one target take turns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.locking import locked
from capdoctor.vendored_fixes.shop import check
from capdoctor.vendored_fixes.targets import find_target
from tests.helpers.fix_cases import Case

ROOT = Path(__file__).resolve().parents[2]
APPLY = """
import sys
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.targets import find_target
fix = find_fix("sparse-mla")
what = {"apply": apply, "revert": revert}[sys.argv[2]]
result = what(fix, find_target(sys.argv[1], fix))
print(result.status_before, result.status_after, len(result.changed_files))
"""


def test_a_held_lock_is_named_after_the_wait(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(CannotDo, match="Another capdoctor"),
        locked(tmp_path, 0.2),
    ):
        pass


def test_a_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path, 0.0):
            pass
    assert list(tmp_path.iterdir()) == [], "nothing is left in the tree"


def test_two_calls_at_once_change_the_tree_once(
    make_tree: Callable[..., Path], sparse_case: Case
) -> None:
    site = make_tree(sparse_case)
    command = [sys.executable, "-c", APPLY, str(site), "apply"]
    both = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert said == ["fixed fixed 0", "vulnerable fixed 3"]
    fix = find_fix("sparse-mla")
    assert check(fix, find_target(str(site), fix)).status_before is FixStatus.FIXED
