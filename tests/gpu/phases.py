"""A visit to a GPU machine: phases that are done once, also over several calls.

``OUT`` gets ``results.json``, ``WORK`` keeps the state file. A phase that is done is skipped; one
that fails says so, and the visit goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_SHOWN = 2000  # characters of a result that are printed


class Visit:
    """The folders of a visit and what is known so far."""

    def __init__(self, out: Path, work: Path) -> None:
        self.out, self.work = out.absolute(), work.absolute()
        for folder in (self.out, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        self.state = self.work / "state.json"
        self.results: dict[str, Any] = (
            json.loads(self.state.read_text()) if self.state.exists() else {}
        )

    def save(self, phase: str, result: Any) -> None:
        self.results[phase] = result
        for path in (self.state, self.out / "results.json"):
            path.write_text(json.dumps(self.results, indent=1))


V = TypeVar("V", bound=Visit)


def do_phases(
    visit: V,
    phases: Mapping[str, Callable[[V], Any]],
    wanted: Iterable[str],
    *,
    until: float | None = None,
) -> int:
    """Do those phases that are not done; give 1 if one of them failed.

    After ``until`` on the monotonic clock no phase begins.
    """
    failed = 0
    for name in wanted:
        if name in visit.results:
            continue
        begin = time.monotonic()
        if until is not None and begin > until:
            print(f"{name}: no time left", flush=True)
            continue
        try:
            result = phases[name](visit)
        except Exception as error:  # noqa: BLE001 - no phase may stop the others
            failed = 1
            print(f"{name}: failed: {error!r}", flush=True)
            continue
        visit.save(name, result)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
        print(json.dumps(result)[:_SHOWN], flush=True)
    return failed
