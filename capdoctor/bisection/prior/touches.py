"""Which commits of a range touched which files and functions, read from git's logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.prefetch import prefetch

_DEFINED = re.compile(r"^[+-]?\s*(?:async\s+def|def|class)\s+(\w+)")
_LOG = ("log", "--first-parent", "--diff-merges=first-parent", "--format=%x00%H")


@dataclass(frozen=True, slots=True)
class Touched:
    """Per commit the files it changed, and which functions of the watched ones.

    A watched file goes by the name that it has at the newer end.
    """

    files: dict[str, frozenset[str]] = field(default_factory=dict)
    functions: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    def with_file(self, path: str) -> frozenset[str]:
        """Return the commits that changed a watched file."""
        return frozenset(sha for sha, files in self.files.items() if path in files)

    def with_function(self, path: str, function: str) -> frozenset[str]:
        """Return the commits that changed a function of a watched file."""
        wanted = (path, function)
        return frozenset(sha for sha, found in self.functions.items() if wanted in found)


def touched(mirror: Mirror, older: str, newer: str, watch: Iterable[str]) -> Touched:
    """Return what the first-parent commits of (older, newer] touched; renames are followed."""
    similar = "-M100%" if mirror.partial else "-M"
    listed = git(mirror.folder, *_LOG, "--name-status", similar, newer, f"^{older}")
    files, names = follow(listed, watch)
    if not names:
        return Touched(files)
    prefetch(mirror, older, newer, names)
    patches = git(
        mirror.folder, *_LOG, "-p", "-U0", "--no-renames", newer, f"^{older}", "--", *names
    )
    return Touched(files, functions_in(patches, names))


def follow(listed: str, watch: Iterable[str]) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Return the files of every commit, and every name a watched file had to its newest name.

    ``listed`` is a log with name and status, newest first: that is how a rename is followed back.
    """
    names = {path: path for path in watch}
    files: dict[str, frozenset[str]] = {}
    for block in listed.split("\0")[1:]:
        sha, *lines = block.split("\n")
        found: set[str] = set()
        for line in lines:
            status, *paths = line.split("\t")
            if status.startswith("R") and paths[-1] in names:
                names.setdefault(paths[0], names[paths[-1]])
            found.update(names.get(path, path) for path in paths)
        files[sha] = frozenset(found)
    return files, names


def functions_in(patches: str, names: dict[str, str]) -> dict[str, frozenset[tuple[str, str]]]:
    """Return the functions of every commit's patch: of the hunk's header, added, or removed."""
    return {
        sha: frozenset(_functions(lines, names))
        for sha, *lines in (block.split("\n") for block in patches.split("\0")[1:])
    }


def _functions(lines: Sequence[str], names: dict[str, str]) -> Iterable[tuple[str, str]]:
    path = ""
    for line in lines:
        if line.startswith("diff --git "):
            path = names.get(line.rpartition(" b/")[2], "")
        elif line.startswith(("@@", "+", "-")) and not line.startswith(("+++", "---")):
            text = line.split("@@", 2)[-1] if line.startswith("@@") else line
            match = _DEFINED.match(text.strip() if line.startswith("@@") else text)
            if match and path:
                yield path, match[1]
