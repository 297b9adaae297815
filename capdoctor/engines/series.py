"""Several runs of one engine: the same again, and one for each CUDA graph mode."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.listener import Quiet, RunListener
from capdoctor.engines.prepare import Prepared, prepare, repro_command, with_graph_mode
from capdoctor.engines.rundir import RunFolder, run_folder, write_text
from capdoctor.engines.start import SCHEMA, Diagnose, run, run_prepared, summary
from capdoctor.errors import CannotDo
from capdoctor.model import (
    Diagnosis,
    EngineSpec,
    MatrixRow,
    Outcome,
    RunOutcome,
    Workaround,
)
from capdoctor.report.json_text import document

GOOD = (Outcome.STARTED, Outcome.STOPPED_AFTER_STAGE)


@dataclass(frozen=True, slots=True)
class GraphMode:
    """A way to run graphs: its name in the answer, vLLM's name, and what it costs to use it."""

    name: str
    engine_name: str
    do: str
    cost: str


@cache
def graph_modes() -> tuple[GraphMode, ...]:
    """Give the modes of ``--matrix``, the cheapest workaround first."""
    text = files("capdoctor.engines").joinpath("graph_modes.toml").read_text("utf-8")
    return tuple(GraphMode(**entry) for entry in tomllib.loads(text)["mode"])


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
    with _series(spec, again, listener, diagnose) as series:
        numbers = range(1, times + 1)
        outcomes = [series.run(f"run-{number}", f"{number}/{times}") for number in numbers]
        shown = next((run for run in outcomes if run.outcome not in GOOD), outcomes[-1])
        return series.written(replace(shown, runs=tuple(map(summary, outcomes))))


def run_matrix(
    spec: EngineSpec, *, listener: RunListener | None = None, diagnose: Diagnose | None = None
) -> RunOutcome:
    """Run as asked, then once in each graph mode, and say which workarounds hold.

    A mode that this engine does not know is a row ``setup_failed``. Raises as `run` does for the
    first run.
    """
    with _series(spec, ("--matrix",), listener, diagnose) as series:
        base = series.run("as-asked", "as asked")
        rows = tuple(_row(series, mode) for mode in graph_modes())
        verified = workarounds(base, rows)
        answer = replace(base, matrix=rows, workarounds_verified=verified)
        return series.written(answer)


def _row(series: _Series, mode: GraphMode) -> MatrixRow:
    try:
        done = series.run(f"mode-{mode.name}", mode.name, mode.engine_name)
    except CannotDo:
        return MatrixRow(mode.name, Outcome.SETUP_FAILED, None, 0.0)
    return MatrixRow(mode.name, done.outcome, _class(done.diagnosis), done.seconds)


def workarounds(base: RunOutcome, rows: Sequence[MatrixRow]) -> tuple[Workaround, ...]:
    """Give the modes that got an engine going which fails as it was asked for, cheapest first."""
    if base.outcome in GOOD:
        return ()
    good = {row.mode: row.outcome for row in rows if row.outcome in GOOD}
    return tuple(_workaround(mode, good[mode.name]) for mode in graph_modes() if mode.name in good)


def _workaround(mode: GraphMode, outcome: Outcome) -> Workaround:
    stopped = outcome is Outcome.STOPPED_AFTER_STAGE
    limit = " (seen to pass the stage, not to the end of start-up)" if stopped else ""
    return Workaround(mode.do + limit, mode.cost)


def _class(diagnosis: Diagnosis | None) -> str | None:
    return diagnosis.crash_class if diagnosis else None


@dataclass(frozen=True, slots=True)
class _Series:
    """Runs that share what was prepared, the compile caches and the taken-over signals."""

    prepared: Prepared
    top: RunFolder
    listener: RunListener
    interrupts: Interrupts
    diagnose: Diagnose | None

    def run(self, name: str, title: str, graph_mode: str | None = None) -> RunOutcome:
        """Run once in a folder of its own under the common one."""
        prepared = with_graph_mode(self.prepared, graph_mode) if graph_mode else self.prepared
        with run_folder(self.top.root / name, name) as folder:
            return run_prepared(
                prepared,
                folder,
                self.listener,
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
def _series(
    spec: EngineSpec,
    again: Sequence[str],
    listener: RunListener | None,
    diagnose: Diagnose | None,
) -> Iterator[_Series]:
    """Prepare once for several runs; ``again`` are the words that make it several.

    The caches that they share go at the end.
    """
    with (
        Interrupts(repro_command(spec, *again)) as interrupts,
        run_folder(spec.out, spec.model) as top,
    ):
        try:
            prepared = prepare(spec, top.root)
            yield _Series(prepared, top, listener or Quiet(), interrupts, diagnose)
        finally:
            shutil.rmtree(top.caches, ignore_errors=True)
