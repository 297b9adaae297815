"""The loop: ask the search what to run, run it, write it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capdoctor.bisection.device_control import HOW, DeviceCheck
from capdoctor.bisection.estimate import minutes_left, runs_left, switch_cost
from capdoctor.bisection.history.commit_facts import commit_facts
from capdoctor.bisection.history.layout import Layout
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.journal.journal import Journal
from capdoctor.bisection.journal.story import Run, Story, run_event
from capdoctor.bisection.line import Line
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.picture import picture
from capdoctor.bisection.probes.probe import Place, Probe
from capdoctor.bisection.progress import BisectListener, Tested, Testing
from capdoctor.bisection.refine import Refined, refine
from capdoctor.bisection.search.advise import advise
from capdoctor.bisection.search.bracket import newest_transition
from capdoctor.bisection.search.case import Case, End, Ending, Purpose, Settings
from capdoctor.bisection.search.evidence import count
from capdoctor.bisection.suspicion import CONTROL, Suspicion, suspicion
from capdoctor.bisection.verdicts import mark_of
from capdoctor.bisection.votes import seen_on, stuck, votes
from capdoctor.bisection.workers import Task, Workers, workers_for
from capdoctor.errors import CannotDo


class Paused(CannotDo):
    """The machine stands in the way; nothing is lost and nothing was counted against a commit."""


@dataclass
class Campaign:
    """One bisection under way. ``story`` grows with every run; the journal has it all."""

    mirror: Mirror
    layout: Layout | None
    story: Story
    journal: Journal
    work: Path
    probe: Probe
    listener: BisectListener
    device_check: DeviceCheck | None = None
    clock: Callable[[], float] = time.monotonic
    _since: float = field(init=False)
    _before: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock where the journal left off."""
        self._since = self.clock()
        self._before = self.story.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds spent on the bisection, pauses left out."""
        return self._before + self.clock() - self._since

    def search(self, line: Line) -> tuple[End, Refined]:
        """Run until the line's search ends; also the line as it was refined on the way.

        Raises:
            Paused: the machine failed; resume later.
            KeyboardInterrupt: the user stopped it.
        """
        refined = Refined(line)
        crew = workers_for(self._run_task, self.story.begin.request.workers)
        try:
            while True:
                refined = refine(self.mirror, self.layout, self.story, refined)
                step = self._step(refined, crew)
                if isinstance(step, End):
                    return step, refined
                self._finish_one(crew)
                self._cancel_useless(refined, crew)
        finally:
            crew.close()

    def run_once(self, sha: str, purpose: str) -> Observation:
        """Run a commit on the first worker, outside the search; a run of the journal counts.

        Raises:
            Paused: the device of that worker is broken.
        """
        for run in self.story.runs:
            if run.sha == sha and run.purpose == purpose and run.observation.saw is not Saw.INFRA:
                return run.observation
        if self.device_check is not None and 0 in self._suspicion().due:
            control = Task(self.story.begin.older, CONTROL, -1)
            self._write(control, 0, self._run_task(control, 0))
            self._pause_if_stuck()
        task = Task(sha, purpose, -1)
        seen = self._run_task(task, 0)
        self._write(task, 0, seen)
        return seen

    def case(self, refined: Refined, crew: Workers | None = None) -> Case:
        """Return what the search is told."""
        request = self.story.begin.request
        settings = Settings(
            confirm=request.confirm,
            known_flaky=request.flaky,
            switch_cost=switch_cost(self.story.runs),
        )
        return Case(
            refined.line.size,
            seen_on(refined.line, votes(self.story)),
            refined.prior,
            settings,
            crew.in_flight if crew else (),
            crew.free if crew else 1,
        )

    def _step(self, refined: Refined, crew: Workers) -> End | None:
        """Start the runs that come next; an End when there are none."""
        self._pause_if_stuck()
        if self.device_check is None and self._control(refined, crew):
            return None
        case = self.case(refined, crew)
        step = advise(case)
        if isinstance(step, End):
            missing = self._unproven(refined, step)
            if missing is None and self._may_end(step):
                return step
            if not self._control(refined, crew) and missing is not None:
                self._start(refined, crew, missing)
            return None
        if self._control(refined, crew):
            return None
        if self._over_budget():
            return None if crew.in_flight else _out_of_time(case)
        for position in step.positions:
            task = Task(refined.line.runs_at(position), step.purpose, position)
            self._start(refined, crew, task)
        return None

    def _control(self, refined: Refined, crew: Workers) -> bool:
        """Have a worker that met a fault prove that its device still works."""
        suspect = self._suspicion().worker
        if suspect is not None and not crew.in_flight:
            self.listener.noted("after a fault: a control run, whether the device still works")
            crew.take(Task(refined.line.runs_at(0), CONTROL, 0), suspect)
        return suspect is not None

    def _may_end(self, end: End) -> bool:
        """Whether no control can change the answer: a device broken by the last run may be why."""
        return end.ending is Ending.FOUND or not self._suspicion().due

    def _suspicion(self) -> Suspicion:
        return suspicion(self.story.runs, at_once=self.device_check is not None)

    def _unproven(self, refined: Refined, end: End) -> Task | None:
        """Return the culprit or its very parent, if only a commit that should be alike was run."""
        if end.ending is not Ending.FOUND or self._over_budget():
            return None
        judged = {
            vote.run.sha
            for vote in votes(self.story)
            if vote.counts and mark_of(vote.judged.verdict) is not None
        }
        line = refined.line
        pair = (line.changed_at(end.hi), line.before_change(end.hi))
        missing = next((sha for sha in pair if sha not in judged), None)
        if missing is None:
            return None
        return Task(missing, Purpose.CONFIRM, line.position(missing) or 0)

    def _pause_if_stuck(self) -> None:
        reason = stuck(votes(self.story), self.story)
        if reason:
            last = self.story.runs[-1].observation
            hint = "free that GPU, or have it reset" if last.provisioning == HOW else ""
            raise Paused(f"the bisection is paused: {reason}", hint)

    def _over_budget(self) -> bool:
        budget = self.story.begin.request.budget
        return budget is not None and self.elapsed >= budget * 60

    def _finish_one(self, crew: Workers) -> None:
        task, worker, seen = crew.next_done()
        if seen is not None:
            self._write(task, worker, seen)

    def _cancel_useless(self, refined: Refined, crew: Workers) -> None:
        if crew.in_flight and not self.story.begin.request.flaky:
            around = newest_transition(count(self.case(refined).seen), refined.line.size)
            crew.cancel_outside(around.lo, around.hi)

    def _run_task(self, task: Task, worker: int) -> Observation:
        request = self.story.begin.request
        number, reference = len(self.story.runs) + 1, self.story.reference
        place = Place(
            task.sha,
            self.mirror,
            self.work / "worktrees",
            self.work / "runs" / f"{number:03d}-{task.sha[:12]}-{worker}",
            worker,
            request.gpus[worker] if worker < len(request.gpus) else None,
            reference.stage if reference else None,
            task.cancelled,
        )
        if task.purpose == CONTROL and self.device_check is not None:
            return self.device_check(place)
        return self.probe.run(place)

    def _write(self, task: Task, worker: int, seen: Observation) -> None:
        run = Run(task.sha, task.purpose, seen, self.elapsed, worker)
        self.journal.append(run_event(run))
        begin, runs, resumed_at = self.story.begin, self.story.runs, self.story.resumed_at
        self.story = Story(begin, (*runs, run), resumed_at)
        judged = votes(self.story)[-1].judged
        seconds = seen.seconds + seen.setup_seconds
        told = Tested(task.sha, task.purpose, judged.verdict, judged.reason, seconds)
        self.listener.tested(told)

    def _start(self, refined: Refined, crew: Workers, task: Task) -> None:
        self._announce(refined, self.case(refined, crew), task)
        crew.take(task)

    def _announce(self, refined: Refined, case: Case, task: Task) -> None:
        left = runs_left(case)
        around = newest_transition(count(case.seen), case.size)
        drawn = picture(case.size, case.seen)
        self.listener.testing(
            Testing(
                task.sha,
                commit_facts(self.mirror, task.sha).title,
                task.purpose,
                around.hi - around.lo,
                left,
                minutes_left(left, self.story.runs, self.story.begin.request.workers),
                drawn[::-1] if refined.line.find_fix else drawn,
            )
        )


def _out_of_time(case: Case) -> End:
    around = newest_transition(count(case.seen), case.size)
    ending = Ending.UNCONFIRMED if around.hi - around.lo == 1 else Ending.RANGE
    return End(ending, around.lo, around.hi, 0.0, reason="the time that was allowed is used up")
