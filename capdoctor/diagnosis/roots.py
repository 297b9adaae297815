"""Which incident is the root: what nothing explains, and of a chain the error that says most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capdoctor.diagnosis.explain import Explained
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.matching import Match
from capdoctor.diagnosis.tables import table

# Records with these heads carry the exception that ended the process.
_FATAL_HEADS = (
    "EngineCore failed to start",
    "EngineCore hit an exception",
    "EngineCore encountered a fatal error",
    "WorkerProc hit an exception",
    "WorkerProc failed to start",
    "Scheduler hit an exception",
    "TpModelWorkerClient hit an exception",
    "DataParallelController hit an exception",
    "DetokenizerManager hit an exception",
    "Error executing method",
    "Exception in worker",
    "Exception in run_tp_server",
    "Exception in ModelTpServer",
)
_HARMLESS_LEVELS = frozenset({"WARNING", "INFO", "DEBUG"})
_LOGGED = frozenset({"ERROR", "CRITICAL"})
_WAYS_OUT = frozenset({"KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit"})
# Errors that code often raises on its way to the one that matters.
_STEPPING_STONES = frozenset(
    {"KeyError", "AttributeError", "StopIteration", "HTTPError", "OfflineModeIsEnabled",
     "ImportError", "ModuleNotFoundError", "LookupError", "NotImplementedError", "gaierror",
     "NameResolutionError", "MaxRetryError", "ConnectionError", "FileNotFoundError"}
)  # fmt: skip
# Exit codes above this stand for a signal, as a shell reports it.
_SHELL_BASE = 128
# Bounds for a hostile log: so many candidates are tried, so long a chain is followed.
_MOST_HEADS = 300
_LONGEST_CHAIN = 32
# A match below this strength rests on the type of the error alone.
_STRONG = 4

Matcher = Callable[[Incident, Sequence[Incident]], Match | None]


@dataclass(frozen=True, slots=True)
class Root:
    """The root, what it matched, its chain (itself first), and other roots beside it."""

    incident: Incident
    match: Match | None
    chain: tuple[Incident, ...]
    rivals: tuple[Incident, ...] = ()


def find_root(
    incidents: Sequence[Incident], explained: Explained, matcher: Matcher, *, ready: bool = False
) -> Root | None:
    """Choose the root among the incidents that nothing explains, or None if none may be one.

    ``ready``: start-up had finished, so a supervisor's word on the end may tell of a stop.
    """
    causes = {explanation.cause for explanation in explained.values()}
    heads = [
        one
        for one in incidents
        if one.index not in explained
        and may_be_root(one, ready=ready)
        and not (one.ignored and one.index not in causes)
        and not _is_reprint(one, incidents)
    ]
    heads = heads[:_MOST_HEADS]
    found = [_of_chain(head, incidents, explained, matcher) for head in heads]
    found = [root for root in found if root.match is not None or not is_stray(root.incident)]
    if not found:
        return None
    known = any(root.match is not None for root in found)
    found.sort(key=lambda root: (known and _is_unsaid(root), *_rank(root)))
    best = found[0]
    same = [r.incident for r in found[1:] if _is_unsaid(r) or _fatality(r) >= _fatality(best)]
    return Root(best.incident, best.match, best.chain, tuple(same))


def is_stray(one: Incident) -> bool:
    """Whether it is a raw line that no form of error is known for.

    One that carries a driver's error and the C++ line that met it is an error all the same.
    """
    said = one.driver is not None and bool(one.native_frames)
    return one.kind == "native" and one.bare and one.event is None and not said


def _is_reprint(one: Incident, incidents: Sequence[Incident]) -> bool:
    """Whether it breaks off, and its process had logged the error that then ended it."""
    return (
        one.cut_off
        and one.uncaught
        and any(
            other.level in _LOGGED
            and other.type is not None
            and other.line < one.line
            and other.stream.same_process(one.stream)
            for other in incidents
        )
    )


def may_be_root(one: Incident, *, ready: bool = False) -> bool:
    """Whether an incident can be a cause at all."""
    if one.level in _HARMLESS_LEVELS or one.short_type in _WAYS_OUT:
        return False
    if one.death is not None:
        if one.death.source in table("native_kinds")["relayed_deaths"]:
            return not ready and _is_crash_as_supervised(one)
        code = one.death.exit_code
        return bool(one.death.signal) or code is None or code <= 0 or code > _SHELL_BASE
    return True


def _is_crash_as_supervised(one: Incident) -> bool:
    kinds = table("native_kinds")
    death = one.death
    return (
        death is not None
        and death.source in kinds["supervisors"]
        and death.signal is not None
        and death.signal not in kinds["stop_signals"]
    )


def _is_unsaid(root: Root) -> bool:
    """A traceback that breaks off before its error, where another error says what went wrong."""
    return root.match is None and root.incident.cut_off


def _rank(root: Root) -> tuple[int, int, int]:
    unknown = root.match is None and root.incident.short_type in _STEPPING_STONES
    return (-_fatality(root), int(unknown), root.incident.line)


def _fatality(root: Root) -> int:
    """3: it ended a process; 2: an uncaught traceback; 1: an error that was logged; 0: a line."""
    if any(one.headline.startswith(_FATAL_HEADS) for one in root.chain):
        return 3
    if root.incident.kind == "native":
        return 0 if is_stray(root.incident) else 3
    if root.incident.kind == "death":
        return 1
    if root.incident.bare:
        return 0
    return 3 if root.incident.level is None else 1


def _of_chain(
    head: Incident, incidents: Sequence[Incident], explained: Explained, matcher: Matcher
) -> Root:
    chain = _chain(head, incidents, explained)
    matches = [(one, matcher(one, chain)) for one in chain]
    strong = [(one, m) for one, m in matches if m is not None and m.condition.weight >= _STRONG]
    some = [(one, m) for one, m in matches if m is not None]
    solid = [(one, m) for one, m in matches if one.short_type not in _STEPPING_STONES]
    chosen, match = (strong or some or solid or matches)[0]
    rest = tuple(one for one in chain if one is not chosen)
    return Root(chosen, match, (chosen, *rest))


def _chain(head: Incident, incidents: Sequence[Incident], explained: Explained) -> list[Incident]:
    """The exceptions that were raised while the head, or one of these, was being handled.

    Those that the follow-on table names only pass things on: they stay out.
    """
    chain = [head]
    members = {head.index}
    for one in incidents:
        if len(chain) >= _LONGEST_CHAIN:
            break
        if one.raised_from in members and one.index in explained:
            if explained[one.index].rule == "chain":
                chain.append(one)
            members.add(one.index)
    return chain
