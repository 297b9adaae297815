"""The status of a fix, read from git objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.probes.fix import FixProbe, fix_probe
from capdoctor.bisection.probes.probe import Place
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.contract import Files, Reading
from tests.helpers.git_repo import Commit, build_repository

INFO = find_fix("fold-indptr")
MARKER = INFO.markers[0]
HOME = "aiter/any/place.py"


class _Room:
    """Reads a word in the file that has the marker; remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[dict[str, bytes]] = []

    def read(self, files: Files) -> Reading:
        self.given.append(dict(files))
        if HOME not in files:
            return Reading(FixStatus.NOT_APPLICABLE)
        status = FixStatus(files[HOME].decode().split()[-1])
        return Reading(status, (FixSite(HOME, "f", status),), "because")

    def rewrite(self, files: Files) -> dict[str, bytes]:
        raise NotImplementedError


def _place(mirror: Mirror, sha: str, tmp_path: Path) -> Place:
    return Place(sha, mirror, tmp_path / "trees", tmp_path / "out")


@pytest.mark.parametrize(
    ("status", "saw"),
    [
        ("vulnerable", Saw.CRASH),
        ("partly_fixed", Saw.CRASH),
        ("fixed", Saw.CLEAN),
        ("fixed_differently", Saw.CLEAN),
        ("not_applicable", Saw.CLEAN),
        ("unreadable", Saw.UNBUILDABLE),
    ],
)
def test_statuses(tmp_path: Path, status: str, saw: Saw) -> None:
    files = {HOME: f"# {MARKER} {status}", "aiter/other.py": "nothing here"}
    shas = build_repository(tmp_path / "repo", [Commit(files)])
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    seen = FixProbe(INFO, _Room()).run(_place(mirror, shas[0], tmp_path))
    assert seen.saw is saw
    assert seen.signature == ("fix:fold-indptr" if saw is Saw.CRASH else None)
    assert seen.starts == 0


def test_only_files_with_a_marker_are_handed_over_and_each_is_looked_into_once(
    tmp_path: Path,
) -> None:
    filler = {f"aiter/m{number}.py": f"{number}" for number in range(50)}
    commits = [
        Commit({HOME: f"{MARKER} vulnerable", "aiter/x.cu": MARKER, **filler}),
        Commit({"aiter/m3.py": "changed"}),
        Commit({HOME: f"{MARKER} fixed"}),
        Commit({HOME: None}),
    ]
    shas = build_repository(tmp_path / "repo", commits)
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    room = _Room()
    probe = FixProbe(INFO, room)
    saws = [probe.run(_place(mirror, sha, tmp_path)).saw for sha in shas]
    assert saws == [Saw.CRASH, Saw.CRASH, Saw.CLEAN, Saw.CLEAN]
    assert [set(files) for files in room.given] == [{HOME}, {HOME}, {HOME}, set()]
    assert not (tmp_path / "trees").exists()


def test_an_unknown_fix_and_another_repository_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bundled fix"):
        fix_probe("no-such-fix")
    shas = build_repository(tmp_path / "repo", [Commit({"a.py": "1"})])
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    with pytest.raises(CannotDo, match="holds no aiter package"):
        fix_probe("fold-indptr").check(mirror, shas[0])
