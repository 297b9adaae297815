"""Several runs of one engine that share what can be shared: what was prepared, and caches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.listener import Quiet, RunListener
from capdoctor.engines.prepare import Prepared, forget, prepare, repro_command, with_graph_mode
from capdoctor.engines.rundir import RunFolder, run_folder, write_text
from capdoctor.engines.start import SCHEMA, Diagnose, run, run_prepared, summary
from capdoctor.model import EngineSpec, Outcome, RunOutcome, Stage
from capdoctor.report.json_text import document

GOOD = (Outcome.STARTED, Outcome.STOPPED_AFTER_STAGE)


def run_repeated(
    spec: EngineSpec,
    times: int,
    *,
    listener: RunListener | None = None,
    diagnose: Diagnose | None = None,
) -> RunOutcome:
    """Run ``times`` times and give the first run that went wrong, else the last, with all in sum.

    The runs share prepared files and compile caches; each has a folder of its own. Raises as
    `run` does.
    """
    if times <= 1:
        return run(spec, listener=listener, diagnose=diagnose)
    again = ("--repeat", str(times))
    with series_of(spec, again, listener, diagnose) as series:
        numbers = range(1, times + 1)
        outcomes = [series.run(f"run-{number}", f"{number}/{times}") for number in numbers]
        shown = next((run for run in outcomes if run.outcome not in GOOD), outcomes[-1])
        return series.written(replace(shown, runs=tuple(map(summary, outcomes))))


@dataclass(frozen=True, slots=True)
class Series:
    """Runs that share what was prepared, the compile caches and the taken-over signals."""

    prepared: Prepared
    top: RunFolder
    listener: RunListener
    interrupts: Interrupts
    diagnose: Diagnose | None

    def run(
        self,
        name: str,
        title: str,
        *,
        graph_mode: str | None = None,
        stop_after: Stage | None = None,
        listener: RunListener | None = None,
    ) -> RunOutcome:
        """Run once in a folder of its own under the common one.

        A graph mode goes over what the series was asked for, a listener over the series' own; a
        stage to stop after is taken where the series has none.
        """
        prepared = with_graph_mode(self.prepared, graph_mode) if graph_mode else self.prepared
        if prepared.spec.stop_after is None:
            prepared = replace(prepared, spec=replace(prepared.spec, stop_after=stop_after))
        with run_folder(self.top.root / name, name) as folder:
            return run_prepared(
                prepared,
                folder,
                listener or self.listener,
                self.interrupts,
                self.diagnose,
                title=title,
                caches=self.top.caches,
            )

    def written(self, answer: RunOutcome) -> RunOutcome:
        """Write the answer of all into the common folder."""
        answer = replace(answer, artifacts={**answer.artifacts, "all_runs": str(self.top.root)})
        write_text(self.top.outcome, document(SCHEMA, answer) + "\n")
        return answer


@contextmanager
def series_of(
    spec: EngineSpec,
    again: Sequence[str],
    listener: RunListener | None,
    diagnose: Diagnose | None,
) -> Iterator[Series]:
    """Prepare once for several runs; ``again`` are the words that make it several.

    The caches that they share go at the end.
    """
    with (
        Interrupts(repro_command(spec, *again)) as interrupts,
        run_folder(spec.out, spec.model) as top,
    ):
        prepared = prepare(spec, top.root)
        try:
            yield Series(prepared, top, listener or Quiet(), interrupts, diagnose)
        finally:
            forget(prepared)
            shutil.rmtree(top.caches, ignore_errors=True)
