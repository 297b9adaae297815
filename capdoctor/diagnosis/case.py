"""Everything that is known of one run before a verdict: incidents, links, root and stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capdoctor.diagnosis.collect import Collected, collect, collect_stray
from capdoctor.diagnosis.driver_log import NO_DRIVER_LOG, DriverLog
from capdoctor.diagnosis.explain import Explained, explain
from capdoctor.diagnosis.incident import Incident, lines_between
from capdoctor.diagnosis.matching import Match, Subject, best_match
from capdoctor.diagnosis.platforms import platform_of_incident, platform_of_run
from capdoctor.diagnosis.roots import Root, find_root, is_stray
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.staging import NO_STAGE, StageClaim, stage_of
from capdoctor.diagnosis.versions import plain, versions_of
from capdoctor.logs import Run
from capdoctor.model import Stage, VersionClaim

if TYPE_CHECKING:  # it brings all that is known of runs, and no name is needed to read a log
    from capdoctor.model import RunFacts

ENGINE_DEATH_TYPES = frozenset(
    {"EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError", "EngineGenerateError"}
)
# A clue counts for an error when it stands this close before it, or right after it.
_CLUE_BEFORE = 400
_CLUE_AFTER = 60
_LINES_BEFORE = 3
# Frames of so many exceptions of the same chain are looked at.
_RELATIVES = 12


@dataclass(frozen=True, slots=True)
class Given:
    """What a run is worked up with; ``total_lines`` are those of the whole log."""

    signatures: Sequence[Signature]
    facts: RunFacts | None = None
    driver_log: DriverLog = NO_DRIVER_LOG
    total_lines: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One run, worked up. ``stage`` is the root's."""

    run: Run
    given: Given
    collected: Collected
    explained: Explained
    versions: dict[str, VersionClaim]
    platform: str | None
    root: Root | None
    stage: StageClaim

    @property
    def facts(self) -> RunFacts | None:
        """What the process controller knows, for a run that was under control."""
        return self.given.facts

    @property
    def driver_log(self) -> DriverLog:
        """The CUDA driver's own log of the run."""
        return self.given.driver_log

    @property
    def incidents(self) -> Sequence[Incident]:
        """The incidents in file order."""
        return self.collected.incidents


def work_up(run: Run, given: Given) -> Case:
    """Collect, link and choose the root of one run.

    When no error explains its end, lines that are only clues are tried as the cause, and then raw
    lines.
    """
    case = _work_up(run, given, collect(run))
    if not _is_open(case):
        return case
    if case.collected.clues:
        promoted = _work_up(run, given, collect(run, promote=True))
        if promoted.root is not None and promoted.root.incident.kind != "death":
            return promoted
    stray = _work_up(run, given, collect_stray(run, given.total_lines))
    if stray.root is None or (stray.root.match is None and is_stray(stray.root.incident)):
        return case
    if not case.incidents and case.run.ready is None:
        return stray
    driver = stray.root.incident.driver
    if driver is None or driver.code is None or (case.run.ready and not driver.sticky):
        return case
    return replace(case, root=stray.root, stage=stray.stage)


def _is_open(case: Case) -> bool:
    """Whether the end of the run still lacks a cause: no root, or a death that says no reason."""
    return case.root is None or case.root.incident.kind == "death"


def is_engine_death(one: Incident) -> bool:
    """Whether an error says that the engine is dead."""
    return one.short_type in ENGINE_DEATH_TYPES


def _work_up(run: Run, given: Given, collected: Collected) -> Case:
    signatures, driver_log = given.signatures, given.driver_log
    explained = explain(collected.incidents, run)
    versions = versions_of(run)
    facts = given.facts
    if facts is not None and facts.engine == "vllm" and facts.engine_version:
        started = VersionClaim(facts.engine_version, "read: the package that was started")
        versions.setdefault("vllm", started)
    platform = platform_of_run(run)
    surroundings = _Surroundings(run, collected, plain(versions), platform, driver_log)

    def match(one: Incident, chain: Sequence[Incident]) -> Match | None:
        return best_match(signatures, surroundings.subject(one, chain))

    candidates = _after_ready(collected.incidents, run)
    root = find_root(candidates, explained, match, ready=run.ready is not None)
    stage = NO_STAGE
    if root is not None:
        later = _raised_on(root.chain, collected.incidents)
        stage = stage_of(root.incident, (*root.chain[1:], *later), run)
        platform = platform_of_incident(root.incident, platform)
    return Case(run, given, collected, explained, versions, platform, root, stage)


def _after_ready(incidents: Sequence[Incident], run: Run) -> Sequence[Incident]:
    """Once start-up has finished, what came before it did not stop it."""
    ready = run.ready
    if ready is None:
        return incidents
    return [one for one in incidents if one.line > ready.line]


@dataclass(frozen=True, slots=True)
class _Surroundings:
    run: Run
    collected: Collected
    versions: dict[str, str]
    platform: str | None
    driver_log: DriverLog

    def subject(self, one: Incident, chain: Sequence[Incident]) -> Subject:
        relatives = [other for other in chain[:_RELATIVES] if other is not one]
        outer = tuple(frame for other in relatives for frame in other.frames)
        frames = (*one.frames, *one.native_frames, *outer)
        return Subject(
            incident=one,
            text=one.text.lower(),
            frames=frames,
            stage=self._stage(one, (*relatives, *_raised_on(chain, self.collected.incidents))),
            platform=platform_of_incident(one, self.platform),
            engine=self.run.engine,
            versions=self.versions,
            context=self._context(one).lower(),
            args="\n".join(args.text for args in self.run.args).lower(),
            driver_log=self.driver_log.text.lower(),
            exits=_exits(one, self.collected.incidents),
        )

    def _stage(self, one: Incident, relatives: Iterable[Incident]) -> Stage | None:
        ready = self.run.ready
        if ready is not None and one.line > ready.line:
            return Stage.SERVING
        return stage_of(one, relatives, self.run).stage

    def _context(self, one: Incident) -> str:
        near = [
            clue.text
            for clue in self.collected.clues
            if one.line - _CLUE_BEFORE <= clue.line <= one.last_line + _CLUE_AFTER
        ]
        before = lines_between(self.run.lines, one.line - _LINES_BEFORE, one.line - 1)
        near += [line.text for line in before if not _is_frame_like(line.text)]
        return "\n".join(near)


def _raised_on(chain: Sequence[Incident], incidents: Iterable[Incident]) -> list[Incident]:
    """What was raised while one of a chain was being handled, follow-ons such as 901 included.

    The traceback of an error that passes a ``with`` begins there; that of ``capture_end`` after it
    holds the frames above, and with them the stage.
    """
    members = {one.index for one in chain}
    found: list[Incident] = []
    for one in incidents:
        if one.raised_from in members and one.index not in members:
            members.add(one.index)
            found.append(one)
        if len(found) >= _RELATIVES:
            break
    return found


def _is_frame_like(text: str) -> bool:
    return text.startswith(("  File ", "    "))


def _exits(one: Incident, incidents: Sequence[Incident]) -> frozenset[str]:
    """Exit codes and signals of this incident, or of the deaths that follow a native one."""
    if one.kind == "python":
        return frozenset()
    deaths = [one.death] if one.death else []
    if one.kind == "native":
        deaths += [o.death for o in incidents if o.death is not None and o.line >= one.line]
    exits = {str(d.exit_code) for d in deaths if d.exit_code is not None}
    exits |= {d.signal for d in deaths if d.signal}
    if one.type:
        exits.add(one.type)
    return frozenset(exits)
