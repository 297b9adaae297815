"""Probes that need no engine, over the real trees of vLLM releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, markdown
from capdoctor.model import BisectAnswer, EngineSpec
from tests.bisection.wheel_history import wheel_repository
from tests.conftest import has_torch

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

# The crash came into the tree with the feature; here the fix came two releases later.
TREES = ("0.29.0", "0.30.0-vulnerable", "0.32.0-vulnerable", "0.32.0", "0.33.0")
FIRST_VULNERABLE, FIRST_FIXED = "0.30.0-vulnerable", "0.32.0"
Repo = tuple[Path, dict[str, str]]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    folder = tmp_path_factory.mktemp("releases") / "vllm"
    return folder, wheel_repository(folder, TREES)


PROBES = [
    "fix:sparse-mla",
    pytest.param(
        "scenario:sparse-mla",
        marks=pytest.mark.skipif(not has_torch(), reason="torch is not installed"),
    ),
]


@pytest.mark.parametrize("probe", PROBES)
def test_the_release_that_brought_the_crash_is_found(
    releases: Repo, tmp_path: Path, probe: str
) -> None:
    repo, shas = releases
    request = BisectRequest(str(repo), "0.29.0", "v0.32.0-vulnerable", probe, confirm=1)
    result = bisect(request, work_dir=tmp_path)
    assert result.answer is BisectAnswer.CULPRIT, markdown(result)
    assert result.candidates == (shas[FIRST_VULNERABLE],)


@pytest.mark.parametrize("probe", PROBES)
def test_the_release_that_fixed_it_is_found(releases: Repo, tmp_path: Path, probe: str) -> None:
    repo, shas = releases
    request = BisectRequest(
        str(repo),
        good="0.33.0",
        bad="v0.30.0-vulnerable",
        probe=probe,
        engine=EngineSpec("embedded", ""),
        find_fix=True,
        confirm=1,
    )
    result = bisect(request, work_dir=tmp_path)
    assert result.answer is BisectAnswer.CULPRIT, markdown(result)
    assert result.candidates == (shas[FIRST_FIXED],)
    assert result.culprit is not None
    assert result.culprit.title == f"tree of {FIRST_FIXED}"


def test_a_fix_is_judged_in_well_under_a_second_a_commit(releases: Repo, tmp_path: Path) -> None:
    request = BisectRequest(str(releases[0]), "0.29.0", "v0.32.0-vulnerable", "fix:sparse-mla")
    result = bisect(request, work_dir=tmp_path)
    later = [probe.seconds for probe in result.probes[2:]]
    assert max(later) < 1.0
    assert result.engine_starts == 0
