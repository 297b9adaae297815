"""Sixty-four commits of a model file, bisected with real starts of the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, judge_checkout, markdown
from capdoctor.engines.start import run
from capdoctor.model import BisectAnswer, EngineSpec, ProbeVerdict
from tests.bisection.simulated import seeded
from tests.conftest import has_torch
from tests.helpers.git_repo import Commit, build_repository, git

pytestmark = pytest.mark.skipif(not has_torch(), reason="torch is not installed")

MODEL = '''"""A small attention layer, commit {number}."""

import torch
from torch import nn
{imports}
CAPTURE_SIZES = [1, 2]
WIDTH = 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)

    def longest(self, lengths):
        {longest}

    def forward(self, hidden, lengths):
        {first}
        scale = self.longest(lengths)
        return self.query(hidden) / scale


def build():
    return Layer()


def inputs(batch):
    return torch.randn(batch, WIDTH, device="cuda"), torch.full((batch,), 9, device="cuda")
'''
LEGAL, ILLEGAL = "return lengths.max()", "return int(lengths.max())"
COUNT = 64


def _model(number: int, *, illegal: bool, broken: str) -> str:
    return MODEL.format(
        number=number,
        imports="import no_such_package_of_ours\n" if broken == "import" else "",
        longest=ILLEGAL if illegal else LEGAL,
        first="hidden = hidden @ torch.ones(3, 3)" if broken == "other" else "hidden = hidden + 0",
    )


def _history(seed: int) -> tuple[list[Commit], int]:
    """Return 64 commits, a random one of which turns illegal; 8 do not import, 8 crash otherwise.

    Both ends, the culprit and its parent can be judged, so that there is one to find.
    """
    rng = seeded(seed)
    culprit = rng.randint(5, COUNT - 5)
    free = [at for at in range(1, COUNT - 1) if at not in (culprit - 1, culprit)]
    chosen = rng.sample(free, 16)
    broken = dict.fromkeys(chosen[:8], "import") | dict.fromkeys(chosen[8:], "other")
    commits = [
        Commit(
            {"model.py": _model(at, illegal=at >= culprit, broken=broken.get(at, ""))},
            f"change {at} (#{500 + at})",
        )
        for at in range(COUNT)
    ]
    return commits, culprit


SPEC = EngineSpec(kind="embedded", model="model.py")


def test_the_commit_that_made_the_model_illegal_is_found_and_confirmed(tmp_path: Path) -> None:
    commits, culprit = _history(seed=5)
    shas = build_repository(tmp_path / "repo", commits, tags={"v1.0": 0})
    request = BisectRequest(str(tmp_path / "repo"), "v1.0", "main", engine=SPEC)
    result = bisect(request, work_dir=tmp_path / "work")
    assert result.answer is BisectAnswer.CULPRIT, markdown(result)
    assert result.culprit is not None
    assert (result.culprit.sha, result.culprit.pr) == (shas[culprit], f"#{500 + culprit}")
    at_ends = {probe.sha: probe.verdict for probe in result.probes}
    assert at_ends[shas[-1]] is ProbeVerdict.BAD
    assert result.engine_starts == len(result.probes)
    assert result.signature is not None


def test_a_checkout_is_judged_for_git_bisect_run(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    commits = [
        Commit({"model.py": _model(0, illegal=False, broken="")}),
        Commit({"model.py": _model(1, illegal=True, broken="")}),
        Commit({"model.py": _model(2, illegal=True, broken="other")}),
    ]
    shas = build_repository(repo, commits)
    git(repo, "checkout", "--quiet", shas[1])
    reference = tmp_path / "reference"
    first = run(EngineSpec(kind="embedded", model=str(repo / "model.py"), out=reference))
    assert first.diagnosis is not None
    found = {}
    for at, sha in enumerate(shas):
        git(repo, "checkout", "--quiet", sha)
        judged = judge_checkout(repo, SPEC, reference, run_engine=run)
        found[at] = int(judged.exit_code)
    assert found == {0: 0, 1: 1, 2: 125}
