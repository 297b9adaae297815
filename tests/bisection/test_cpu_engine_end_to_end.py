"""Thirty-two commits over an installed vLLM, bisected with real starts of the CPU engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, markdown
from capdoctor.model import BisectAnswer, EngineSpec, Stage
from tests.helpers.git_repo import Commit, build_repository

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

MODEL = Path(__file__).parents[1] / "data/models/llama_tiny"
COUNT, CULPRIT, BROKEN = 32, 19, 11
SITE = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
GUILTY = "vllm/engine/arg_utils.py"
BEFORE = "    def create_model_config(self) -> ModelConfig:\n"
AFTER = BEFORE + '        raise ValueError("the model may not have layers")\n'


def _package(python: Path) -> dict[str, bytes]:
    """Return the Python files of the installed package, but for what the build writes."""
    asked = subprocess.run([str(python), "-c", SITE], capture_output=True, text=True, check=True)
    site = Path(asked.stdout.strip())
    paths = ((path, str(path.relative_to(site))) for path in (site / "vllm").rglob("*.py"))
    return {name: path.read_bytes() for path, name in paths if name != "vllm/_version.py"}


def _history(python: Path) -> list[Commit]:
    package = _package(python)
    guilty = package[GUILTY].decode()
    assert BEFORE in guilty
    commits = [Commit(package, "the installed release")]
    for number in range(1, COUNT):
        files = {"vllm/logger.py": package["vllm/logger.py"] + f"# {number}\n".encode()}
        if number == CULPRIT:
            files[GUILTY] = guilty.replace(BEFORE, AFTER).encode()
        if number in (BROKEN, BROKEN + 1):
            text = b"import not_there\n" if number == BROKEN else package["vllm/envs.py"]
            files["vllm/envs.py"] = text
        commits.append(Commit(files, f"change {number} (#{40000 + number})"))
    return commits


def test_a_config_failure_is_found_over_the_installed_engine(
    vllm_python: Path, tmp_path: Path
) -> None:
    shas = build_repository(tmp_path / "repo", _history(vllm_python), checkout=False)
    spec = EngineSpec("vllm", str(MODEL), python=vllm_python, stop_after=Stage.CONFIG)
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", engine=spec, confirm=2)
    result = bisect(request, work_dir=tmp_path / "work")
    assert result.answer is BisectAnswer.CULPRIT, markdown(result)
    assert result.candidates == (shas[CULPRIT],)
    assert {probe.provisioning for probe in result.probes} == {"python overlay"}
    assert result.engine_starts == result.runs
    for folder in (tmp_path / "work/runs").iterdir():
        ran = json.loads((folder / "overlay.json").read_text())
        assert ran["commit"] == _sha_of(folder, shas)
        told = json.loads((folder / "outcome.json").read_text())
        assert told["engine"]["commit"] == ran["commit"]


def _sha_of(folder: Path, shas: tuple[str, ...]) -> str:
    return next(sha for sha in shas if sha[:12] in folder.name)
