"""One run as asked and one in each CUDA graph mode, each no longer than its question needs.

The question is which mode to serve with, so that it starts. Eager comes first: it starts soonest,
and where it fails in the same way before graphs come into it, no mode can help. Then the cheapest;
once one is seen to start, the costlier ones run no further than past the stage of the crash.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

from capdoctor.engines.listener import RunListener
from capdoctor.engines.series import GOOD, Series, series_of
from capdoctor.engines.settled_config import ConfigListener, SameStart
from capdoctor.engines.start import Diagnose
from capdoctor.errors import CannotDo
from capdoctor.model import (
    Diagnosis,
    EngineSpec,
    MatrixRow,
    Outcome,
    RunOutcome,
    Stage,
    Workaround,
)

AS_ASKED = "as asked"
_EAGER = "eager"
# What happens in them happens in every mode: graphs come later, and so does compilation.
_BEFORE_GRAPHS = frozenset({Stage.IMPORT, Stage.CONFIG, Stage.DEVICE_INIT, Stage.WEIGHTS})


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


def run_matrix(
    spec: EngineSpec, *, listener: RunListener | None = None, diagnose: Diagnose | None = None
) -> RunOutcome:
    """Run as asked, then in each graph mode that can differ, and say which workarounds hold.

    A mode that this engine does not know is a row ``setup_failed``; one that comes down to an
    earlier run has its outcome and says ``same_as``. Raises as `run` does for the first run.
    """
    with series_of(spec, ("--matrix",), listener, diagnose) as series:
        matrix = _Matrix(series)
        base = matrix.first()
        for mode in sorted(graph_modes(), key=lambda mode: mode.name != _EAGER):
            matrix.run(mode)
        rows = tuple(matrix.rows[mode.name] for mode in graph_modes())
        verified = workarounds(base, rows, matrix.became)
        return series.written(replace(base, matrix=rows, workarounds_verified=verified))


@dataclass(slots=True)
class _Matrix:
    """What is known so far: the rows by mode, and the configurations that have been run."""

    series: Series
    base: RunOutcome | None = None
    rows: dict[str, MatrixRow] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    became: dict[str, str | None] = field(default_factory=dict)
    alike_in_eager: bool = False

    def first(self) -> RunOutcome:
        """Run as asked."""
        watch = self._listener()
        self.base = self.series.run("as-asked", AS_ASKED, listener=watch)
        self._learn(AS_ASKED, watch)
        return self.base

    def run(self, mode: GraphMode) -> None:
        """Run in a mode, unless it is known how that goes, and keep its row."""
        self.rows[mode.name] = self._row(mode)

    def _row(self, mode: GraphMode) -> MatrixRow:
        if self.alike_in_eager and self.base is not None:
            return _of(mode, self.base, 0.0, same_as=_EAGER)
        watch = self._listener()
        try:
            done = self.series.run(
                f"mode-{mode.name}",
                mode.name,
                graph_mode=mode.engine_name,
                stop_after=self._far_enough(),
                listener=watch,
            )
        except CannotDo:
            return MatrixRow(mode.name, Outcome.SETUP_FAILED, None, 0.0)
        except SameStart as same:
            self.series.listener.run_ending(f"the engine starts as in the run {same.name!r}")
            self.became[mode.name] = self.became[same.name]
            return self._same(mode, same)
        self._learn(mode.name, watch)
        if mode.name == _EAGER:
            self.alike_in_eager = _fails_alike_before_graphs(self.base, done)
        return _of(mode, done, done.seconds)

    def _far_enough(self) -> Stage | None:
        """Give the stage after which the mode's question is answered, None for the start's end."""
        cheaper = (row for name, row in self.rows.items() if name != _EAGER)
        found = any(row.outcome is Outcome.STARTED for row in cheaper)
        crash = self.base.diagnosis if self.base else None
        slow = self.series.prepared.spec.kind == "vllm"
        return crash.stage if found and crash and slow else None

    def _same(self, mode: GraphMode, same: SameStart) -> MatrixRow:
        if same.name == AS_ASKED and self.base is not None:
            return _of(mode, self.base, same.seconds, same_as=AS_ASKED)
        row = self.rows[same.name]
        return replace(row, mode=mode.name, seconds=round(same.seconds, 3), same_as=same.name)

    def _listener(self) -> ConfigListener:
        return ConfigListener(self.series.listener, self.asked, self.settled)

    def _learn(self, name: str, watch: ConfigListener) -> None:
        self.became[name] = watch.config.mode
        if watch.config.asked is not None and watch.config.settled is not None:
            self.asked.setdefault(watch.config.asked, name)
            self.settled.setdefault(watch.config.settled, name)


def _of(mode: GraphMode, done: RunOutcome, seconds: float, same_as: str | None = None) -> MatrixRow:
    return MatrixRow(mode.name, done.outcome, _class(done.diagnosis), round(seconds, 3), same_as)


def _fails_alike_before_graphs(base: RunOutcome | None, eager: RunOutcome) -> bool:
    first, second = (base.diagnosis if base else None), eager.diagnosis
    if first is None or second is None or first.stage not in _BEFORE_GRAPHS:
        return False
    return bool(first.fingerprint) and first.fingerprint == second.fingerprint


def workarounds(
    base: RunOutcome, rows: Sequence[MatrixRow], became: Mapping[str, str | None] | None = None
) -> tuple[Workaround, ...]:
    """Give the modes that got an engine going which fails as it was asked for, cheapest first.

    ``became`` says what the engine made of each mode, where it said so: a mode that it takes for
    another is no cheaper than that one, which stands for both.
    """
    if base.outcome in GOOD:
        return ()
    good = {row.mode: row.outcome for row in rows if row.outcome in GOOD}
    others = {mode.engine_name: mode.name for mode in graph_modes()}
    taken_for = {name: others.get(mode or "") for name, mode in (became or {}).items()}
    return tuple(
        _workaround(mode, good[mode.name])
        for mode in graph_modes()
        if mode.name in good
        and (mode.name == _EAGER or taken_for.get(mode.name) in (None, mode.name))
    )


def _workaround(mode: GraphMode, outcome: Outcome) -> Workaround:
    stopped = outcome is Outcome.STOPPED_AFTER_STAGE
    limit = "; seen to pass the stage, not to the end of start-up" if stopped else ""
    return Workaround(mode.do, mode.cost + limit)


def _class(diagnosis: Diagnosis | None) -> str | None:
    return diagnosis.crash_class if diagnosis else None
