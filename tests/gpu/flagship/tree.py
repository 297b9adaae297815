"""Git repositories of a vLLM tree for the GPU visit: one broken commit among harmless ones."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

INDEX_GROUP = "vllm/v1/attention/backends/mla/index_group.py"
UNIMPORTABLE = "vllm/v1/worker/gpu/__init__.py"
CRASHING = "vllm/v1/worker/gpu/cudagraph_utils.py"
HARMLESS = "vllm/capdoctor_note.py"
COMMITS = 64


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=capdoctor", "-c", "user.email=capdoctor@example.invalid"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def start(folder: Path, site: Path) -> None:
    """Make a repository of the installed package's Python files."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for path in sorted((site / "vllm").rglob("*.py")):
        copy = folder / path.relative_to(site)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    commit(folder, "vLLM as released")


def commit(folder: Path, title: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", title)
    return git(folder, "rev-parse", "HEAD")


def take_guards_out(folder: Path) -> None:
    from tests.helpers.vulnerable_vllm import take_guards_out as take

    take(folder)


def history(folder: Path, seed: int) -> tuple[list[str], str]:
    """Commit 64 changes: one takes the guards out, four do not import, four crash otherwise.

    Gives all commits, oldest first, and the culprit. Each of the eight is undone by the next
    commit, so that they stand alone.
    """
    chance = random.Random(seed)  # noqa: S311 - a layout, no secret
    culprit = chance.randrange(20, 45)
    spots = [n for n in range(4, COMMITS - 4, 2) if abs(n - culprit) > 1]
    odd = chance.sample(spots, 8)
    shas = [git(folder, "rev-parse", "HEAD")]
    for number in range(1, COMMITS):
        before = _break_otherwise(folder, odd.index(number)) if number in odd else None
        (folder / HARMLESS).write_text(f'"""Note {number}."""\n')
        if number == culprit:
            take_guards_out(folder)
        shas.append(commit(folder, f"Change {number} (#{1000 + number})"))
        if before is not None:
            before[0].write_text(before[1])
    return shas, shas[culprit]


def _break_otherwise(folder: Path, kind: int) -> tuple[Path, str]:
    """Break one file for one commit and give what to write back after it."""
    path = folder / (UNIMPORTABLE if kind < 4 else CRASHING)
    text = path.read_text()
    if kind < 4:
        path.write_text(text + "\nimport no_such_module_of_ours\n")
    else:
        path.write_text(
            text + "\n\ndef _broken(*args, **kwargs):\n"
            '    raise KeyError("another crash")\n\n\nprofile_cudagraph_memory = _broken\n'
        )
    return path, text
