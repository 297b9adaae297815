"""Which rank of an engine did what: one crash in eight processes is one crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capdoctor.diagnosis.explain import Explained
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import Death, Run, StreamId, rank_in_name
from capdoctor.model import Json, ProcessEnd, ProcessRef, RunFacts

_ALIKE = frozenset({"repeat", "same-code"})


def ranks_of(run: Run, root: Incident, alike: Sequence[Incident]) -> dict[str, Json]:
    """Give the ranks that raised the root error or died of it, and who else printed an error.

    Empty where the log knows one rank alone.
    """
    known = _by_process(run)
    workers = {rank for rank in known.values() if rank is not None}
    if len(workers) < 2:  # noqa: PLR2004 - one rank has nobody to differ from
        return {}
    printed = set(_ranks((node.stream for node in run.nodes), known))
    raised = set(_ranks((one.stream for one in (root, *alike) if one.death is None), known))
    if root.death is not None:
        raised |= {rank for rank in (_of_death(root.death),) if rank is not None}
    return {
        "raised_it": [*sorted(raised)],
        "printed_an_error": [*sorted(printed)],
        "printed_none": [*sorted(workers - printed)],
        "source": "read: prefixes of the lines",
    }


def alike_in_other_ranks(
    root: Incident, incidents: Sequence[Incident], explained: Explained
) -> tuple[Incident, ...]:
    """Give the incidents that are the root error once more."""
    return tuple(
        one
        for one in incidents
        if one.index in explained
        and explained[one.index].cause == root.index
        and explained[one.index].rule in _ALIKE
    )


def process_of(one: Incident, run: Run, facts: RunFacts | None) -> ProcessRef:
    """Give the process that raised the root error, as far as log and process control name it.

    A worker goes by several names in turn (``VllmWorker-1``, ``Worker``, ``Worker_TP1``): its rank
    is in one of them, and the process number ties them together.
    """
    if one.death is None:
        return ProcessRef(one.stream.name, one.stream.pid, _rank(one.stream, _by_process(run)))
    name = one.death.process or one.stream.name
    rank = _of_death(one.death)
    pid = one.death.pid
    if pid is None and rank is not None:
        ended = _ended(facts, rank)
        pid = ended.pid if ended else None
    return ProcessRef(name, pid, rank)


def _of_death(death: Death) -> int | None:
    return death.rank if death.rank is not None else rank_in_name(death.process or "")


def _ended(facts: RunFacts | None, rank: int) -> ProcessEnd | None:
    """Give the worker of this rank that ended by itself, if the controller saw just one."""
    found = [
        process
        for process in (facts.processes if facts else ())
        if rank_in_name(process.name) == rank and "ended by capdoctor" not in process.end
    ]
    return found[0] if len(found) == 1 else None


_Process = tuple[int | None, str | None]


def _by_process(run: Run) -> dict[_Process | StreamId, int | None]:
    """Give the rank of every worker: by process number and node, else by the stream itself."""
    found: dict[_Process | StreamId, int | None] = {}
    for stream in run.streams:
        if stream.role == "worker" and (stream.rank is not None or _key(stream) not in found):
            found[_key(stream)] = stream.rank
    return found


def _key(stream: StreamId) -> _Process | StreamId:
    return stream if stream.pid is None else (stream.pid, stream.ip)


def _rank(stream: StreamId, known: dict[_Process | StreamId, int | None]) -> int | None:
    return stream.rank if stream.rank is not None else known.get(_key(stream))


def _ranks(
    streams: Iterator[StreamId], known: dict[_Process | StreamId, int | None]
) -> Iterator[int]:
    for stream in streams:
        rank = _rank(stream, known)
        if rank is not None and (stream.role == "worker" or _key(stream) in known):
            yield rank
