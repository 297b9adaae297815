"""Kill a child at every step on disk, look at the tree, and let the next call make it good.

Run as ``python kill_driver.py TREE``; prints one JSON line for each experiment. A step is an
audit event of the interpreter (open for writing, rename, remove, ...), so nothing in the package
has to know about the test. ``half`` kills in the middle of a file instead.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes import applying, disk, journal
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.targets import find_target

FIX = find_fix("sparse-mla")
STEPS = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.setxattr")
Tree = dict[str, bytes]


def read_tree(folder: Path) -> Tree:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def call(what: Callable[..., Any], site: Path) -> str:
    try:
        return str(what(FIX, find_target(str(site), FIX)).status_after)
    except CannotDo as error:
        return error.sentence


def die_at(step: int) -> None:
    """Let this process be killed just before its ``step``-th change on disk."""
    count = -1

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        writes = (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if writes or event in STEPS:
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def die_half_way(step: int) -> None:
    """Let this process be killed when half of its ``step``-th file is written."""
    count = -1
    write_new = disk.write_new

    def half(path: Path, data: bytes, like: os.stat_result | None = None) -> None:
        nonlocal count
        count += 1
        if count == step:
            write_new(path, data[: len(data) // 2], like)
            os.kill(os.getpid(), signal.SIGKILL)
        write_new(path, data, like)

    disk.write_new = half


def in_child(arm: Callable[[int], None], step: int, what: Callable[..., Any], site: Path) -> bool:
    """Run ``what`` in a child that dies at ``step``; say whether it died."""
    pid = os.fork()
    if pid == 0:
        arm(step)
        call(what, site)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def main(work: Path) -> None:
    pristine, site, applied = work / "site", work / "run" / "site", work / "applied"
    shutil.copytree(pristine, site)
    call(apply, site)
    shutil.copytree(site, applied)
    states = {apply: pristine, revert: applied}
    kept = journal.state_folder()
    shutil.copytree(kept, work / "state-applied")
    old, new = read_tree(pristine), read_tree(applied)

    def reset(first: Callable[..., Any]) -> None:
        shutil.rmtree(site)
        shutil.copytree(states[first], site)
        shutil.rmtree(kept)
        if first is revert:
            shutil.copytree(work / "state-applied", kept)
        else:
            kept.mkdir()

    for arm in (die_at, die_half_way):
        for first in (apply, revert):
            for then in (apply, revert):
                step = 0
                while True:
                    reset(first)
                    died = in_child(arm, step, first, site)
                    now = read_tree(site)
                    said = call(then, site)
                    report(arm, first, then, step, died, now, said, read_tree(site), old, new)
                    if not died:
                        break
                    step += 1
    for step in range(0, 200, 2):  # the call that makes it good is killed as well
        reset(apply)
        in_child(die_at, 18, apply, site)
        died = in_child(die_at, step, apply, site)
        now = read_tree(site)
        said = call(apply, site)
        report(die_at, apply, apply, step, died, now, said, read_tree(site), old, new)
        if not died:
            break


def report(
    arm: Callable[..., Any],
    first: Callable[..., Any],
    then: Callable[..., Any],
    step: int,
    died: bool,
    now: Tree,
    said: str,
    end: Tree,
    old: Tree,
    new: Tree,
) -> None:
    staged = [name for name in now if name not in old]
    mixed = [name for name in old if now.get(name) not in (old[name], new[name])]
    changed = [name for name in old if now.get(name) == new[name] != old[name]]
    line = {
        "how": arm.__name__,
        "first": first.__name__,
        "then": then.__name__,
        "step": step,
        "died": died,
        "torn": mixed,
        "staged": [name for name in staged if ".capdoctor-" in name],
        "strange": [name for name in staged if ".capdoctor-" not in name],
        "changed": changed,
        "said": said,
        "end": "old" if end == old else "new" if end == new else "mix",
    }
    sys.stdout.write(json.dumps(line) + "\n")


def skip_what_is_not_under_test() -> None:
    """Compute each change once, and look neither at processes nor at the disk's cache."""
    proven, known = applying.proven_change, {}

    def once(fix: Any, room: Any, files: Any) -> Any:
        key = tuple(sorted(files.items()))
        if key not in known:
            known[key] = proven(fix, room, files)
        return known[key]

    applying.proven_change = once
    applying.users_of = lambda *_: []
    os.fsync = lambda _: None  # a kill leaves the cache alone; only a power cut would not


if __name__ == "__main__":
    skip_what_is_not_under_test()
    main(Path(sys.argv[1]))
