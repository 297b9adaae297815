"""A repository whose commits are released vLLM trees, some of them made vulnerable again."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.helpers.git_repo import Commit, build_repository
from tests.helpers.package_wheels import wheel
from tests.helpers.vulnerable_vllm import GUARDS, without_guards


def wheel_repository(folder: Path, trees: tuple[str, ...]) -> dict[str, str]:
    """Make the repository in the order given; returns name to commit.

    A tree is a version; with ``-vulnerable`` behind it, its guards are taken out. Every commit has
    a tag of its name.
    """
    commits, before = [], dict[str, bytes]()
    for name in trees:
        tree = _tree(name)
        changed = {path: text for path, text in tree.items() if before.get(path) != text}
        gone = dict.fromkeys(before.keys() - tree.keys())
        commits.append(Commit({**changed, **gone}, f"tree of {name}"))
        before = tree
    tags = {f"v{name}": at for at, name in enumerate(trees)}
    shas = build_repository(folder, commits, tags=tags, checkout=False)
    return dict(zip(trees, shas, strict=True))


def _tree(name: str) -> dict[str, bytes]:
    version, _, vulnerable = name.partition("-")
    with zipfile.ZipFile(wheel("vllm", version)) as archive:
        names = [path for path in archive.namelist() if path.endswith(".py")]
        tree = {path: archive.read(path) for path in names if path.startswith("vllm/")}
    if vulnerable:
        for path in GUARDS.keys() & tree.keys():
            tree[path], count = without_guards(tree[path])
            assert count == GUARDS[path]
    return tree
