"""Probe ``fix:ID``: is a commit vulnerable? Read from git objects, in milliseconds."""

from __future__ import annotations

import time

from capdoctor.bisection.history.blobs import blob_ids, read_blobs
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Place
from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus, Frame
from capdoctor.vendored_fixes.catalogue import find_fix, load_room
from capdoctor.vendored_fixes.contract import FixInfo, Reading, Room

_SAW = {
    FixStatus.VULNERABLE: Saw.CRASH,
    FixStatus.PARTLY_FIXED: Saw.CRASH,
    FixStatus.FIXED: Saw.CLEAN,
    FixStatus.FIXED_DIFFERENTLY: Saw.CLEAN,
    FixStatus.NOT_APPLICABLE: Saw.CLEAN,
    FixStatus.UNREADABLE: Saw.UNBUILDABLE,
}


class FixProbe:
    """The status of one fix in a commit: vulnerable counts as the crash, whatever is legal not."""

    def __init__(self, info: FixInfo, room: Room) -> None:
        self.info = info
        self.room = room
        self.name = f"fix:{info.id}"
        # Between two commits nearly all files are the same: each is looked into once.
        self._marked: dict[str, bool] = {}

    def check(self, mirror: Mirror, sha: str) -> None:
        """Say before anything runs that the package is missing.

        Raises:
            CannotDo: the repository does not hold the fix's package.
        """
        if not blob_ids(mirror, sha, self.info.package):
            raise CannotDo(
                f"{mirror.source} holds no {self.info.package} package at {sha[:12]}",
                f"the fix {self.info.id} is for {self.info.package}",
            )

    def run(self, place: Place) -> Observation:
        """Return the status of the commit as an observation."""
        begin = time.monotonic()
        reading = self.room.read(self._sources(place.mirror, place.sha))
        return _observe(self.info, reading, time.monotonic() - begin)

    def _sources(self, mirror: Mirror, sha: str) -> dict[str, bytes]:
        """Return the files that the fix looks at: those with a marker, and what goes with them.

        In a partial clone only the files where the fault usually lives are looked at, since every
        other one would have to be fetched.
        """
        ids = blob_ids(mirror, sha, self.info.package)
        looked = self.info.homes if mirror.partial else tuple(ids)
        python = {path: ids[path] for path in looked if path in ids and path.endswith(".py")}
        self._look(mirror, set(python.values()) - set(self._marked))
        wanted = {path: blob for path, blob in python.items() if self._marked.get(blob)}
        if wanted:
            wanted |= {path: ids[path] for path in self.info.also_read if path in ids}
        data = read_blobs(mirror.folder, wanted.values())
        return {path: data[blob] for path, blob in wanted.items() if blob in data}

    def _look(self, mirror: Mirror, unseen: set[str]) -> None:
        markers = [marker.encode() for marker in self.info.markers]
        for blob, text in read_blobs(mirror.folder, unseen).items():
            self._marked[blob] = any(marker in text for marker in markers)


def _observe(info: FixInfo, reading: Reading, seconds: float) -> Observation:
    sites = [site for site in reading.sites if site.status is reading.status]
    where = ", ".join(f"{site.file}:{site.function or '?'}" for site in sites[:3])
    saw = _SAW[reading.status]
    frames = tuple(Frame(site.file, None, site.function) for site in sites)
    return Observation(
        saw,
        signature=f"fix:{info.id}" if saw is Saw.CRASH else None,
        title=f"{info.id} is {reading.status}" + (f" in {where}" if where else ""),
        root=frames[0] if frames else None,
        frames=frames if saw is Saw.CRASH else (),
        provisioning="git objects",
        seconds=seconds,
        reason=reading.reason,
    )


def fix_probe(name: str) -> FixProbe:
    """Return the probe for a fix.

    Raises:
        UsageError: there is no such fix.
    """
    info = find_fix(name)
    return FixProbe(info, load_room(info))
