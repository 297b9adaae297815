"""Which rank of an engine did what: one crash in eight processes is one crash."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from capdoctor.diagnosis.explain import Explained
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import Death, Run, StreamId, rank_in_name
from capdoctor.model import Json, ProcessRef

if TYPE_CHECKING:  # a log alone has neither
    from capdoctor.model import ProcessEnd, RunFacts

# The parts of a worker's name that tell it from the others; EP and DCP follow from these.
_PLACE = re.compile(r"(?<![A-Z])(?:DP|PP|PCP|TP)\d{1,9}")
_ALIKE = frozenset({"repeat", "same-code"})


def ranks_of(run: Run, root: Incident, alike: Sequence[Incident]) -> dict[str, Json]:
    """Give the ranks that raised the root error or died of it, and who else printed an error.

    Empty where the log knows one rank alone. A rank is a number, or, where several workers would
    share it (pipeline and data parallel ranks), the worker's place: ``PP1_TP0``.
    """
    known = _labels(run)
    workers = {rank for rank in known.values() if rank is not None}
    if len(workers) < 2:  # noqa: PLR2004 - one rank has nobody to differ from
        return {}
    printed = set(_ranks((node.stream for node in run.nodes), known))
    raised = set(_ranks((one.stream for one in (root, *alike) if one.death is None), known))
    if root.death is not None:
        raised |= {rank for rank in (_of_death(root.death),) if rank is not None}
    return {
        "raised_it": _in_order(raised),
        "printed_an_error": _in_order(printed),
        "printed_none": _in_order(workers - printed),
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


_Label = int | str
_Process = tuple[int | None, str | None]


def _by_process(run: Run) -> dict[_Process | StreamId, int | None]:
    """Give the rank of every worker: by process number and node, else by the stream itself."""
    found: dict[_Process | StreamId, int | None] = {}
    for stream in run.streams:
        if stream.role == "worker" and (stream.rank is not None or _key(stream) not in found):
            found[_key(stream)] = stream.rank
    return found


def _labels(run: Run) -> Mapping[_Process | StreamId, _Label | None]:
    """Give every worker's rank; its place where ranks alone do not tell the workers apart."""
    known = _by_process(run)
    places = {_key(stream): "" for stream in run.streams}
    for stream in run.streams:
        named = "_".join(_PLACE.findall(stream.name or ""))
        places[_key(stream)] = max(places[_key(stream)], named, key=len)
    sharing: dict[int | None, set[str]] = defaultdict(set)
    for key, rank in known.items():
        sharing[rank].add(places[key])
    apart = all(len(sharing[rank]) < 2 for rank in sharing if rank is not None)  # noqa: PLR2004
    if apart and not any(sharing[None]):
        return known
    return {key: places[key] or rank for key, rank in known.items()}


def _in_order(labels: Iterable[_Label]) -> list[Json]:
    return [*sorted(labels, key=_numbers_first)]


def _numbers_first(label: _Label) -> tuple[bool, list[int], str]:
    return (isinstance(label, str), [*map(int, re.findall(r"\d+", str(label)))], str(label))


def _key(stream: StreamId) -> _Process | StreamId:
    return stream if stream.pid is None else (stream.pid, stream.ip)


def _rank(stream: StreamId, known: dict[_Process | StreamId, int | None]) -> int | None:
    return stream.rank if stream.rank is not None else known.get(_key(stream))


def _ranks(
    streams: Iterator[StreamId], known: Mapping[_Process | StreamId, _Label | None]
) -> Iterator[_Label]:
    for stream in streams:
        rank = known.get(_key(stream), stream.rank)
        if rank is not None and (stream.role == "worker" or _key(stream) in known):
            yield rank
