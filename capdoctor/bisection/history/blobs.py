"""Files of a commit, read from git objects without a checkout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from capdoctor.bisection.history.gitcall import git, git_bytes
from capdoctor.bisection.history.mirror import Mirror


def blob_ids(mirror: Mirror, sha: str, folder: str) -> dict[str, str]:
    """Return path to blob id of every file under ``folder`` in a commit; links left out."""
    out = git(mirror.folder, "ls-tree", "-r", "-z", "--full-tree", sha, "--", folder)
    found: dict[str, str] = {}
    for entry in out.split("\0"):
        about, _, path = entry.partition("\t")
        if about.startswith("100"):
            found[path] = about.split()[2]
    return found


def read_blobs(folder: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of blobs by id, in one call of git; a missing one is left out."""
    ids = list(dict.fromkeys(wanted))
    if not ids:
        return {}
    out = git_bytes(folder, "cat-file", "--batch", "--buffer", stdin="\n".join(ids) + "\n")
    found: dict[str, bytes] = {}
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        about = out[at:end].split()
        at = end + 1
        if about[-1] == b"missing":
            continue
        size = int(about[2])
        found[about[0].decode()] = out[at : at + size]
        at += size + 1
    return found


def read_file(mirror: Mirror, sha: str, path: str) -> bytes | None:
    """Return a file of a commit, None where it is missing."""
    ids: Mapping[str, str] = blob_ids(mirror, sha, path)
    return read_blobs(mirror.folder, [ids[path]]).get(ids[path]) if path in ids else None
