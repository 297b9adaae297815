"""The near end of the keeper: start an engine under it, hear from it, have it end everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from capdoctor.engines.keeping import ending, leavings, processes
from capdoctor.engines.rundir import writing
from capdoctor.errors import CannotDo

_KEEPER = "import sys; sys.path.insert(0, sys.argv[1]); from keeping.keeper import main; main()"
_KEEPER_SECONDS = 30.0


class KeptEngine:
    """An engine under a keeper.

    ``out``, ``err`` and ``events`` are descriptors to read from without blocking: the engine's two
    streams, and the keeper's JSON lines. ``events`` ends when the keeper is gone.
    """

    def __init__(self, order: processes.StartOrder, keeper_log: Path) -> None:
        self._order = order
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        try:
            self._keeper = _start_keeper(keeper_log, out, err)
        except CannotDo:
            os.close(self.out)
            os.close(self.err)
            raise
        finally:
            os.close(out)
            os.close(err)
        assert self._keeper.stdout is not None  # noqa: S101 - it is a pipe
        self.events = self._keeper.stdout.fileno()
        for descriptor in (self.out, self.err, self.events):
            os.set_blocking(descriptor, False)
        self._tell({**order, "out": out, "err": err})

    @property
    def keeper_pid(self) -> int:
        """The keeper's process number."""
        return self._keeper.pid

    def end(self, *, grace: float, stacks: bool = False) -> None:
        """Have every process ended; the event ``gone`` follows."""
        self._tell({"grace": grace, "stacks": stacks})

    def _tell(self, order: Mapping[str, Any]) -> None:
        assert self._keeper.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self._keeper.stdin.write(json.dumps(order).encode() + b"\n")
            self._keeper.stdin.flush()
        except OSError:
            return  # the keeper is gone: the end of ``events`` says so

    def close(self, *, all_gone: bool) -> None:
        """Let go of the keeper, which ends the engine if that is still to be done."""
        for stream in (self._keeper.stdin, self._keeper.stdout):
            if stream is not None:
                _close(stream)
        os.close(self.out)
        os.close(self.err)
        try:
            kept_its_word = self._keeper.wait(_KEEPER_SECONDS) == 0
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
            kept_its_word = False
        if not (all_gone or kept_its_word):
            end_strays(self._order["marker"], self._order["tmpdir"])


def _start_keeper(log: Path, out: int, err: int) -> subprocess.Popen[bytes]:
    with writing(log):
        file = log.open("wb")
    with file:
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _KEEPER, str(Path(__file__).parent)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                pass_fds=(out, err),
                start_new_session=True,
            )
        except OSError as exc:
            raise CannotDo(
                f"no process of {sys.executable} can be started: {exc.strerror}",
                "look at the limits for processes and memory, and who may execute that file",
            ) from exc


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return


def end_strays(marker: str, tmpdir: str) -> None:
    """End every process that carries the marker in its environment, and remove what it left.

    For a keeper that was killed: its engine got SIGKILL with it, this finds the descendants.
    """
    watch = leavings.SegmentWatch()
    tree = processes.Tree(-1, marker)
    tree.scan(strays=True)
    watch.claim(tree.pids())
    ending.end_all(tree, ending.EndOrder(grace=0.0), lambda _gone: None)
    leavings.remove_segments(watch)
    leavings.remove_folder(tmpdir)


def split_events(rest: bytes, data: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """Cut the keeper's lines into events; the second value is the unfinished rest."""
    *lines, rest = (rest + data).split(b"\n")
    return [json.loads(line) for line in lines], rest


def start_order(
    command: Sequence[str], env: Mapping[str, str], marker: str, tmpdir: Path
) -> processes.StartOrder:
    """Give the order to start a command in the present folder."""
    return {
        "command": list(command),
        "env": dict(env),
        "cwd": None,
        "marker": marker,
        "tmpdir": str(tmpdir),
        "out": -1,
        "err": -1,
    }
