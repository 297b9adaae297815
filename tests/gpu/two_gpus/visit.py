"""Two GPUs of one host, by the product: a clean start, a crash in both ranks, a kill, a bad GPU.

Run: ``python tests/gpu/two_gpus/visit.py OUT WORK [PHASE...]`` in the repository's root. The phases
``device`` and ``wedge`` need a GPU, nvidia-ml-py and a torch for CUDA; the others need two GPUs and
the Python to have the CUDA vLLM. OUT gets ``results.json`` and the logs, WORK keeps trees, caches
and the state file. A phase that is done is skipped; one that fails says so and the visit goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from capdoctor.engines.environment import COMPILE_CACHES  # noqa: E402 - after the path is set
from tests.gpu import phases  # noqa: E402
from tests.gpu.flagship import tree  # noqa: E402 - after the path is set
from tests.gpu.flagship.aiter_tree import write_tree  # noqa: E402
from tests.gpu.starts import (  # noqa: E402
    ENGINE_ARGS,
    ENGINE_ENV,
    SPARSE_ARGS,
    STOP,
    engine_options,
    gpus,
)
from tests.gpu.two_gpus import watching  # noqa: E402

MODELS = ROOT / "tests/data/models"
RUN_SECONDS, LONGEST = 150, 200
RANKS = ("-tp", "2")


class Visit(phases.Visit):
    """Caches shared by the starts, and how capdoctor is called."""

    def __init__(self, out: Path, work: Path) -> None:
        super().__init__(out, work)
        caches = {
            name: str(self.work / "caches" / folder) for name, folder in COMPILE_CACHES.items()
        }
        self.env = {**os.environ, **ENGINE_ENV, **caches}

    def model(self, name: str) -> Path:
        """Give a folder with the config of a model and nothing else."""
        folder = self.work / "models" / name
        folder.mkdir(parents=True, exist_ok=True)
        source = MODELS / name
        source = source / "config.json" if source.is_dir() else MODELS / f"{name}.json"
        shutil.copyfile(source, folder / "config.json")
        return folder

    def line(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "capdoctor", *map(str, arguments), "--json"]

    def capdoctor(self, name: str, *arguments: str | Path, **env: str) -> dict[str, Any]:
        """Run the product; keep what it printed, give exit code, seconds and the answer."""
        begin = time.monotonic()
        done = subprocess.run(
            self.line(*arguments),
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**self.env, **env},
            check=False,
            timeout=LONGEST,
        )
        (self.out / f"{name}.json").write_text(done.stdout)
        (self.out / f"{name}.err").write_text(done.stderr)
        body = json.loads(done.stdout) if done.stdout else {}
        seconds = round(time.monotonic() - begin, 1)
        tail = [] if body else done.stderr.strip().splitlines()[-4:]
        return {"exit": done.returncode, "wall_s": seconds, "answer": body, "stderr": tail}

    def repro(self, name: str, model: str, arguments: dict[str, Any]) -> list[str | Path]:
        """Give the words of a reproduction on two GPUs."""
        line: list[str | Path] = ["repro", "--model", self.model(model), "--python", sys.executable]
        line += [*RANKS, "--timeout", str(RUN_SECONDS), "--out", self.work / "runs" / name]
        return [*line, *engine_options(arguments)]

    def keep_log(self, name: str) -> None:
        for file in ("engine.log", "driver.log", "after-end.log"):
            path = self.work / "runs" / name / file
            if path.exists():
                shutil.copyfile(path, self.out / f"{name}-{file}")


def machine(_: Visit) -> Any:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d")}
    for name in ("torch", "vllm", "nvidia-ml-py"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found | {"gpus": gpus().splitlines(), "memory": watching.gpus()}


def device(visit: Visit) -> Any:
    """Ask the known-good program: of a healthy GPU, of one that is full, of one that is not there.

    Nothing is to stay on the GPU, and reading its memory is to leave it as it was.
    """
    from capdoctor.engines.gpus.device_check import device_state
    from capdoctor.engines.gpus.memory import read_gpus

    before = watching.gpus()
    count = len(before)
    begin = time.monotonic()
    read = read_gpus({})
    found: dict[str, Any] = {"read_s": round(time.monotonic() - begin, 3), "read": str(read)}
    found["healthy"] = [str(device_state({}, needed)) for needed in (1, count)]
    found["absent"] = str(device_state({"CUDA_VISIBLE_DEVICES": "7"}, 1))
    found["too_many"] = str(device_state({}, count + 1))
    with watching.memory_held(visit.env) as said:
        found["holder"] = said
        found["full"] = str(device_state({}, 1))
    found["back_after_s"] = watching.wait_until(
        lambda: watching.back([gpu["used"] for gpu in before]), 15
    )
    return found | {"before": before, "after": watching.gpus()}


def clean(visit: Visit) -> Any:
    return visit.capdoctor("clean", *visit.repro("clean", "llama_tiny", ENGINE_ARGS), *STOP)


def _broken_tree(visit: Visit) -> Path:
    """Make a repository of the installed vLLM with the guards taken out."""
    import importlib.util

    repo = visit.work / "repo"
    if not repo.exists():
        spec = importlib.util.find_spec("vllm")
        assert spec is not None
        assert spec.origin is not None
        tree.start(repo, Path(spec.origin).parent.parent)
        tree.take_guards_out(repo)
        tree.commit(repo, "Take the guards out")
    return repo


def crash(visit: Visit) -> Any:
    """64 heads on two ranks: 32 each, and the crash comes in both."""
    words = visit.repro("crash", "sparse_mla_tiny", SPARSE_ARGS)
    found = visit.capdoctor("crash", *words, "--source", _broken_tree(visit))
    visit.keep_log("crash")
    return found


def kill(visit: Visit) -> Any:
    """At the time of the contexts and NCCL."""
    return _ended_by(visit, "kill", signal.SIGKILL, 300 << 20)


def interrupt(visit: Visit) -> Any:
    """When the KV cache is there."""
    return _ended_by(visit, "interrupt", signal.SIGINT, 4 << 30)


def _ended_by(visit: Visit, name: str, number: signal.Signals, taken: int) -> Any:
    """Signal capdoctor once both GPUs hold ``taken`` bytes more, and see what stays."""
    mark = f"CAPDOCTOR_VISIT={name}-{os.getpid()}"
    before = watching.used()
    variable, value = mark.split("=")
    with (visit.out / f"{name}.err").open("w") as errors:
        process = subprocess.Popen(
            visit.line(*visit.repro(name, "llama_tiny", ENGINE_ARGS)),
            cwd=ROOT,
            env={**visit.env, variable: value},
            stdout=errors,
            stderr=errors,
        )
        ready = watching.wait_until(lambda: _both_taken(before, taken), RUN_SECONDS)
        at_signal = watching.gpus()
        running = watching.marked(mark)
        process.send_signal(number)
        code = process.wait(60)
    gone = watching.wait_until(lambda: not watching.marked(mark), 30)
    memory = watching.wait_until(lambda: watching.back(before), 30)
    visit.keep_log(name)
    return {
        "both_gpus_in_use_after_s": ready,
        "processes_at_signal": len(running),
        "memory_before": before,
        "memory_at_signal": at_signal,
        "exit": code,
        "no_process_left_after_s": gone,
        "memory_back_after_s": memory,
        "left": watching.marked(mark),
        "memory_after": watching.gpus(),
    }


def _both_taken(before: list[int], taken: int) -> bool:
    return all(now > was + taken for now, was in zip(watching.used(), before, strict=True))


def wedge(visit: Visit) -> Any:
    """A GPU that another process has filled is no evidence: the bisection pauses, and resumes."""
    repo, work = visit.work / "aiter", visit.work / "bisect-wedge"
    shas = _small_history(repo)
    with watching.memory_held(visit.env) as said:
        words = ("bisect", "--repo", repo, "--good", shas[0], "--bad", shas[-1])
        probe = ("--probe", "scenario:fold-indptr", "--device", "cuda", "--work-dir", work)
        paused = visit.capdoctor("wedge-paused", *words, *probe)
        journal = (work / "journal.jsonl").read_text() if (work / "journal.jsonl").exists() else ""
        still = visit.capdoctor("wedge-still", "bisect", "resume", work)
    resumed = visit.capdoctor("wedge-resumed", "bisect", "resume", work)
    culprit = (resumed["answer"].get("culprit") or {}).get("sha")
    return {
        "holder": said,
        "paused": paused,
        "journal": journal.splitlines()[-2:],
        "resume_while_full": still,
        "resumed": resumed,
        "right": culprit == shas[2],
    }


def _small_history(repo: Path) -> list[str]:
    """Give five commits: the third brings the crash back that the first has repaired."""
    repo.mkdir(parents=True)
    tree.git(repo, "init", "-q", "-b", "main")
    shas = []
    for number in range(5):
        write_tree(repo, "after" if number < 2 else "before")
        (repo / "aiter/note.py").write_text(f'"""Note {number}."""\n')
        shas.append(tree.commit(repo, f"Change {number}"))
    return shas


PHASES: dict[str, Callable[[Visit], Any]] = {
    "machine": machine,
    "device": device,
    "wedge": wedge,
    "clean": clean,
    "crash": crash,
    "kill": kill,
    "interrupt": interrupt,
}


def main() -> int:
    out, work, *wanted = sys.argv[1:]
    return phases.do_phases(Visit(Path(out), Path(work)), PHASES, wanted or PHASES)


if __name__ == "__main__":
    raise SystemExit(main())
