"""Real git repositories, made in one go through ``git fast-import``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

START = 1_700_000_000  # the first commit's date; every further one is an hour younger
WHO = "Ada Builder <ada@example.org>"
_ENV = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


@dataclass(frozen=True)
class Commit:
    """What a commit changes: path to new text, None to delete. Parents are indices.

    Without ``parents`` the commit before is the parent; an empty tuple makes a root.
    """

    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    message: str = "change"
    parents: tuple[int, ...] | None = None


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Return what git prints, with nobody's configuration."""
    command = ["git", "-C", str(folder), *arguments]
    env = {**os.environ, **_ENV}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if check and done.returncode:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout.strip()


def build_repository(
    folder: Path,
    commits: Sequence[Commit],
    *,
    tags: Mapping[str, int] | None = None,
    branches: Mapping[str, int] | None = None,
    checkout: bool = True,
) -> tuple[str, ...]:
    """Make a repository whose ``main`` is the last commit; returns the commits' ids."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    marks = folder / ".git" / "marks"
    stream = b"".join(_stream(commits))
    done = subprocess.run(
        ["git", "-C", str(folder), "fast-import", "--quiet", f"--export-marks={marks}"],
        input=stream,
        capture_output=True,
        env={**os.environ, **_ENV},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    by_mark = dict(line.split() for line in marks.read_text().splitlines())
    shas = tuple(by_mark[f":{number + 1}"] for number in range(len(commits)))
    refs = {"refs/heads/main": shas[-1]}
    refs |= {f"refs/tags/{name}": shas[at] for name, at in (tags or {}).items()}
    refs |= {f"refs/heads/{name}": shas[at] for name, at in (branches or {}).items()}
    for name, sha in refs.items():
        git(folder, "update-ref", name, sha)
    git(folder, "update-ref", "-d", "refs/build/tip")
    if checkout:
        git(folder, "reset", "--quiet", "--hard")
    return shas


def _stream(commits: Sequence[Commit]) -> list[bytes]:
    parts: list[bytes] = []
    for number, commit in enumerate(commits):
        when = f"{WHO} {START + 3600 * number} +0000\n"
        message = commit.message.encode()
        parents = commit.parents
        if parents is None:
            parents = (number - 1,) if number else ()
        if not parents:
            parts.append(b"reset refs/build/tip\n\n")
        parts.append(f"commit refs/build/tip\nmark :{number + 1}\n".encode())
        parts.append(f"author {when}committer {when}data {len(message)}\n".encode())
        parts.append(message + b"\n")
        for place, parent in enumerate(parents):
            parts.append(f"{'merge' if place else 'from'} :{parent + 1}\n".encode())
        parts.extend(_change(path, text) for path, text in commit.files.items())
        parts.append(b"\n")
    return parts


def _change(path: str, text: str | bytes | None) -> bytes:
    if text is None:
        return f"D {path}\n".encode()
    data = text.encode() if isinstance(text, str) else text
    return f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"


def linear(count: int, *, path: str = "app.py") -> list[Commit]:
    """Return a history of ``count`` commits, each of which writes its number into one file."""
    return [
        Commit({path: f"number = {number}\n"}, f"change {number} (#{1000 + number})")
        for number in range(count)
    ]
