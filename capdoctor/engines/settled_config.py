"""What an engine says that it was configured to, so that two starts can be known to be the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from capdoctor.engines.listener import BarState, RunListener
from capdoctor.model import Stage

_CONFIG = re.compile(r"Initializing a V1 LLM engine \(.*?\) with config: (.*)")
_MODE = re.compile(r"(cudagraph_mode'?\"?\s*[:=]\s*)(<CUDAGraphMode\.(\w+)[^>]*>|[\w.]+)")
_LONGEST_LINE = 50_000  # the configuration has about 6,000 characters
# vLLM resolves the mode against what the attention backend can do, and says so if it changes it.
_RESOLVED = re.compile(r"setting cudagraph_mode=(?:CUDAGraphMode\.)?(\w+)")
# By then the mode is resolved, and nothing has been captured yet.
_RESOLVED_BY = frozenset(
    {Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.WARMUP, Stage.CAPTURE, Stage.SERVING}
)


class SameStart(Exception):
    """This start is the same as an earlier one, to the engine."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(name)
        self.name, self.seconds = name, seconds


@dataclass(slots=True)
class SettledConfig:
    """The configuration of one start: ``asked`` as printed, ``settled`` with the mode resolved.

    None where the engine does not print its graph mode: then nothing can be said.
    """

    asked: str | None = None
    resolved: str | None = None

    def take_in(self, line: str) -> None:
        """Read a line of the log; one that is too long to be an engine's says nothing."""
        if len(line) > _LONGEST_LINE:
            return
        config = _CONFIG.search(line)
        if config is not None and _MODE.search(config[1]):
            self.asked = config[1].strip()
        resolved = _RESOLVED.search(line)
        if resolved is not None:
            self.resolved = resolved[1]

    @property
    def mode(self) -> str | None:
        """The graph mode that it came down to, by vLLM's name."""
        found = _MODE.search(self.asked) if self.asked else None
        return self.resolved or (_bare(found[3] or found[2]) if found else None)

    @property
    def settled(self) -> str | None:
        """The configuration with the mode that the engine resolved it to."""
        if self.asked is None:
            return None
        return _MODE.sub(
            lambda found: found[1] + (self.resolved or found[3] or found[2]), self.asked
        )


def _bare(mode: str) -> str:
    return mode.removeprefix("CUDAGraphMode.")


class ConfigListener:
    """Hands everything on, and ends a start as soon as it is seen to be the same as a known one.

    ``asked`` and ``settled`` give for a configuration the name of the start that had it.

    Raises:
        SameStart: out of a call, which ends the run.
    """

    def __init__(
        self, listener: RunListener, asked: dict[str, str], settled: dict[str, str]
    ) -> None:
        self._listener, self._asked, self._settled = listener, asked, settled
        self.config = SettledConfig()

    def run_began(self, folder: Path, title: str) -> None:
        """Hand it on."""
        self._listener.run_began(folder, title)

    def stage_began(self, stage: Stage, seconds: float) -> None:
        """Compare what the mode was resolved to, once it is."""
        self._listener.stage_began(stage, seconds)
        if stage in _RESOLVED_BY:
            self._end_if_known(self._settled.get(self.config.settled or ""), seconds)

    def stage_ended(self, stage: Stage, seconds: float) -> None:
        """Hand it on."""
        self._listener.stage_ended(stage, seconds)

    def bar_moved(self, bar: BarState, seconds: float) -> None:
        """Hand it on."""
        self._listener.bar_moved(bar, seconds)

    def line_printed(self, line: str, seconds: float) -> None:
        """Compare what was asked for: the same is resolved in the same way."""
        self._listener.line_printed(line, seconds)
        if self.config.asked is None:
            self.config.take_in(line)
            self._end_if_known(self._asked.get(self.config.asked or ""), seconds)
        else:
            self.config.take_in(line)

    def time_passed(self, seconds: float) -> None:
        """Hand it on."""
        self._listener.time_passed(seconds)

    def run_ending(self, why: str) -> None:
        """Hand it on."""
        self._listener.run_ending(why)

    @staticmethod
    def _end_if_known(name: str | None, seconds: float) -> None:
        if name is not None:
            raise SameStart(name, seconds)
