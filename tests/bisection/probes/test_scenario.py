"""A scenario over small trees of our own, as the probe of a bisection."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, markdown
from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.probes.scenario import PACKAGES, ScenarioProbe, scenario_probe
from capdoctor.capture.scenarios import NAMES
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import BisectAnswer
from tests.conftest import has_torch
from tests.helpers.git_repo import Commit, build_repository

HEAD = """import torch


def _fold_seqlen_indptr(indptr, fold_factor):
    lens = (indptr[1:] - indptr[:-1]).repeat_interleave(fold_factor)
"""
BUGGY = (
    HEAD
    + """    out = torch.empty(lens.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[0] = 0
    out[1:] = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return out
"""
)
FIXED = (
    HEAD
    + """    total = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return torch.nn.functional.pad(total, (1, 0), value=0)
"""
)
OTHER = "def _fold_seqlen_indptr(one, two, three, four):\n    return one\n"
BASE = {"aiter/__init__.py": "", "aiter/mla.py": "x = 1\n"}
TREES = {
    "without": Commit(BASE),
    "crashes": Commit({"aiter/mla.py": BUGGY}),
    "crashes still": Commit({"aiter/other.py": "y = 2\n"}),
    "strange": Commit({"aiter/mla.py": OTHER}),
    "fixed": Commit({"aiter/mla.py": FIXED}),
}
needs_torch = pytest.mark.skipif(not has_torch(), reason="torch is not installed")


@needs_torch
def test_what_a_tree_makes_of_the_scenario(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", list(TREES.values()))
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    found = {}
    for name, sha in zip(TREES, shas, strict=True):
        place = Place(sha, mirror, tmp_path / "trees", tmp_path / name)
        found[name] = ScenarioProbe("fold-indptr").run(place)
    assert {name: seen.saw for name, seen in found.items()} == {
        "without": Saw.CLEAN,
        "crashes": Saw.CRASH,
        "crashes still": Saw.CRASH,
        "strange": Saw.UNBUILDABLE,
        "fixed": Saw.CLEAN,
    }
    assert "not applicable" in found["without"].reason
    crashed = found["crashes"]
    assert crashed.crash_class == "capture_unpinned_copy"
    assert crashed.signature == found["crashes still"].signature
    assert crashed.root is not None
    assert crashed.root.function == "_fold_seqlen_indptr"


@needs_torch
def test_the_commit_that_brought_the_copy_is_found(tmp_path: Path) -> None:
    commits = [TREES["without"], Commit({"a": "1"}), TREES["crashes"], TREES["crashes still"]]
    shas = build_repository(tmp_path / "repo", commits)
    request = BisectRequest(
        str(tmp_path / "repo"), shas[0], "main", "scenario:fold-indptr", confirm=1
    )
    result = bisect(request, work_dir=tmp_path / "work")
    assert result.answer is BisectAnswer.CULPRIT, markdown(result)
    assert result.candidates == (shas[2],)


def test_every_scenario_knows_its_package() -> None:
    assert set(PACKAGES) == set(NAMES)


def test_an_unknown_scenario_and_another_repository_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scenario is called"):
        scenario_probe("nope", "cpu", None)
    shas = build_repository(tmp_path / "repo", [Commit({"a": "1"})])
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    with pytest.raises(CannotDo, match="holds no vllm package"):
        ScenarioProbe("sparse-mla").check(mirror, shas[0])
