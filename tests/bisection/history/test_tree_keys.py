"""Keys of trees tell whether what matters is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.layout import layout_of, layouts
from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.history.tree_keys import live_commits, tree_key
from tests.helpers.git_repo import Commit, build_repository

HISTORY = [
    Commit({"vllm/__init__.py": "0", "csrc/a.cu": "0", "csrc/cpu/b.cpp": "0", "docs/x.md": "0"}),
    Commit({"docs/x.md": "1"}, "docs only"),
    Commit({"vllm/__init__.py": "1"}, "python"),
    Commit({"csrc/cpu/b.cpp": "1"}, "cpu kernel"),
    Commit({"csrc/a.cu": "1"}, "gpu kernel"),
    Commit({"csrc/a.cu": "0"}, "and back"),
    Commit({"requirements/cuda.txt": "torch==2.11\n"}, "pin"),
    Commit({"tests/t.py": "1", "README.md": "1"}, "inert"),
]
NATIVE = ("csrc", "setup.py")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mirror, tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("keys")
    shas = build_repository(folder / "repo", HISTORY)
    return open_mirror(folder / "repo", folder / "m"), shas


def test_the_key_changes_with_the_paths_and_comes_back(
    made: tuple[Mirror, tuple[str, ...]],
) -> None:
    mirror, shas = made
    keys = [tree_key(mirror, sha, NATIVE) for sha in shas]
    assert keys[0] == keys[1] == keys[2]
    assert len({keys[2], keys[3], keys[4]}) == 3
    assert keys[5] == keys[3] == keys[7]


def test_what_only_a_cpu_build_uses_can_be_left_out(
    made: tuple[Mirror, tuple[str, ...]],
) -> None:
    mirror, shas = made
    keys = [tree_key(mirror, sha, NATIVE, ("csrc/cpu",)) for sha in shas]
    assert keys[2] == keys[3]
    assert keys[3] != keys[4]


def test_no_such_path_has_a_key_of_its_own(made: tuple[Mirror, tuple[str, ...]]) -> None:
    assert tree_key(made[0], made[1][0], ("nowhere",)) == "none"


def test_inert_commits_change_nothing_that_ships(made: tuple[Mirror, tuple[str, ...]]) -> None:
    mirror, shas = made
    layout = layout_of(mirror, shas[-1])
    assert layout is not None
    assert layout.name == "vllm"
    live = live_commits(mirror, shas[0], shas[-1], layout.ships)
    assert live == {shas[at] for at in (2, 3, 4, 5, 6)}


def test_another_repository_has_no_layout(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", [Commit({"app.py": "1"})])
    assert layout_of(open_mirror(tmp_path / "repo", tmp_path / "m"), shas[0]) is None


def test_every_layout_ships_its_package() -> None:
    assert {layout.name for layout in layouts()} == {"vllm", "aiter"}
    for layout in layouts():
        assert layout.package in layout.python
        assert set(layout.native) <= set(layout.ships)
