"""A partial clone is asked for all blobs at once."""

from __future__ import annotations

from pathlib import Path

from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.history.prefetch import prefetch
from capdoctor.bisection.prior.build import Crash, weights_of
from capdoctor.model import Frame
from tests.helpers.git_repo import build_repository, git, linear


def _partial(tmp_path: Path) -> tuple[Path, Path, tuple[str, ...]]:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    shas = build_repository(origin, linear(20))
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    url = f"file://{origin}"
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", url, str(clone))
    return origin, clone, shas


def test_the_blobs_of_a_path_come_in_one_go_and_only_once(tmp_path: Path) -> None:
    _, clone, shas = _partial(tmp_path)
    mirror = open_mirror(clone, tmp_path / "m")
    assert prefetch(mirror, shas[4], shas[14], ["app.py"]) == 10
    assert prefetch(mirror, shas[4], shas[14], ["app.py"]) == 0
    assert prefetch(mirror, shas[4], shas[14], ["other.py"]) == 0


def test_a_full_clone_is_left_alone(tmp_path: Path) -> None:
    origin, _, shas = _partial(tmp_path)
    assert prefetch(open_mirror(origin, tmp_path / "m"), shas[0], shas[-1], ["app.py"]) == 0


def test_a_partial_clone_gives_a_prior_too(tmp_path: Path) -> None:
    _, clone, shas = _partial(tmp_path)
    mirror = open_mirror(clone, tmp_path / "m")
    crash = Crash((Frame("app.py", 1, None),))
    weights = weights_of(mirror, None, (shas[0], shas[-1]), shas[1:], crash)
    assert weights is not None
    assert max(weights) == weights[-1]
