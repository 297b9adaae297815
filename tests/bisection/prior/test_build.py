"""From a traceback and a real history to weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect
from capdoctor.bisection.history.layout import layout_of
from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.prior.build import Crash, weights_of
from capdoctor.bisection.prior.places import locate
from capdoctor.model import BisectAnswer, Frame
from tests.bisection.stub_probe import StubProbe, clean, crash, traceback
from tests.helpers.git_repo import Commit, build_repository

COUNT = 200
CULPRIT = 131
CODE = "import x\n\n\ndef capture_model(size):\n    step = {}\n    return step\n"


def _history() -> list[Commit]:
    """Return 200 commits, 10 of which touch the file of the crash, one its line."""
    base = {"vllm/__init__.py": "", "vllm/runner.py": CODE.format(0) + "\n\ndef other():\n    0\n"}
    base |= {"csrc/ops.cu": "void reshape_and_cache() {}\n"}
    commits = [Commit(base, "begin")]
    for number in range(1, COUNT):
        files = {f"vllm/m{number % 17}.py": f"x = {number}\n"}
        if number % 20 == 7:
            files = {"vllm/runner.py": CODE.format(0) + f"\n\ndef other():\n    {number}\n"}
        if number == CULPRIT:
            files = {"vllm/runner.py": CODE.format(number) + "\n\ndef other():\n    127\n"}
        if number > CULPRIT and "vllm/runner.py" in files:
            files = {"vllm/runner.py": CODE.format(CULPRIT) + f"\n\ndef other():\n    {number}\n"}
        if number == 50:
            files = {"csrc/ops.cu": "void reshape_and_cache() { }\n"}
        if number == 60:
            files = {"requirements/cuda.txt": "torch==2.11.0\n"}
        commits.append(Commit(files, f"c{number}"))
    return commits


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mirror, tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("prior")
    shas = build_repository(folder / "repo", _history())
    return folder / "repo", open_mirror(folder / "repo", folder / "m"), shas


FRAMES = traceback(
    ("torch/cuda/graphs.py", "capture_end", 90),
    ("/x/site-packages/vllm/runner.py", "capture_model", 5),
    ("vllm/m3.py", "main", 1),
)


def _weights(made: tuple[Path, Mirror, tuple[str, ...]], crash_: Crash) -> tuple[float, ...]:
    _, mirror, shas = made
    layout = layout_of(mirror, shas[-1])
    weights = weights_of(mirror, layout, (shas[0], shas[-1]), shas[1:], crash_)
    assert weights is not None
    return weights


def test_who_wrote_the_crashing_line_is_the_first_suspect(
    made: tuple[Path, Mirror, tuple[str, ...]],
) -> None:
    weights = _weights(made, Crash(FRAMES))
    assert max(range(len(weights)), key=weights.__getitem__) == CULPRIT - 1
    assert weights[6] > weights[0]


def test_lines_of_another_version_are_not_blamed(
    made: tuple[Path, Mirror, tuple[str, ...]],
) -> None:
    exact = _weights(made, Crash(FRAMES))
    vague = _weights(made, Crash(FRAMES, lines_hold=False))
    assert vague[CULPRIT - 1] < exact[CULPRIT - 1]


def test_a_wrapper_leads_to_the_kernel_behind_it(
    made: tuple[Path, Mirror, tuple[str, ...]],
) -> None:
    weights = _weights(made, Crash(traceback(("vllm/m3.py", "reshape_and_cache", 1))))
    assert weights[49] > 5 * weights[0]


def test_a_moved_pin_is_a_suspect_and_more_so_when_packages_do_not_fit(
    made: tuple[Path, Mirror, tuple[str, ...]],
) -> None:
    normal = _weights(made, Crash(FRAMES))
    package = _weights(made, Crash(FRAMES, crash_class="abi_mismatch"))
    assert normal[59] > 5 * normal[0]
    assert package[59] > 0.4


def test_the_traceback_guides_a_whole_bisection(
    made: tuple[Path, Mirror, tuple[str, ...]], tmp_path: Path
) -> None:
    repo, _, shas = made
    number = {sha: at for at, sha in enumerate(shas)}

    def fate(sha: str, _run: int) -> Observation:
        return crash(frames=FRAMES, root=FRAMES[1]) if number[sha] >= CULPRIT else clean()

    request = BisectRequest(str(repo), shas[0], "main", confirm=1)
    result = bisect(request, StubProbe(fate), work_dir=tmp_path)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[CULPRIT],))
    assert result.runs <= 5


def test_frames_are_found_by_the_longest_tail_of_their_path() -> None:
    files = frozenset({"vllm/a.py", "a.py", "models/m.py"})
    frames = [
        Frame("/opt/venv/site-packages/vllm/a.py", 1, "f"),
        Frame("/tmp/worktree/models/m.py", 2, "Model.forward"),
        Frame("/usr/lib/python3.11/asyncio/runners.py", 3, "run"),
        Frame("torch/a.py", 4, None),
        Frame("/opt/venv/site-packages/torch/a.py", 5, "g"),
        Frame("/home/me/src/a.py", 6, None),
    ]
    found = [(place.path, place.function) for place in locate(frames, files)]
    assert found == [("vllm/a.py", "f"), ("models/m.py", "forward"), ("a.py", None)]
