"""The child process of a scenario: ``python -m capdoctor.capture.scenarios NAME …``."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.scenarios import NAMES, SETUP_FAILED
from capdoctor.capture.scenarios.outcome import CannotExercise, NotApplicable, WrongResult
from capdoctor.capture.scenarios.tree_traceback import crash_lines, root_of
from capdoctor.errors import CapdoctorError

_DEVICE_ERROR = re.compile(r"CUDA|HIP|captur", re.IGNORECASE)
PASSED, CRASHED, NOT_SET_UP = 0, 1, 3
_NO_TORCH = "torch is not installed in capdoctor's own Python (capdoctor[embedded] brings it)"


def main(arguments: list[str] | None = None) -> int:
    """Run the scenario; the exit code is the answer."""
    options = _parse(arguments)
    log = EngineLog(sys.stdout)
    try:
        _run(options, log)
    except NotApplicable as reason:
        return _ended(options, NOT_SET_UP, f"not applicable: {reason}")
    except CannotExercise as reason:
        return _ended(options, NOT_SET_UP, str(reason))
    except CapdoctorError as error:
        return _ended(options, NOT_SET_UP, error.sentence)
    except Exception as error:  # noqa: BLE001 - whatever the tree's code raises is the answer
        log.failure("".join(crash_lines(error, options.source.absolute())))
        root = root_of(error)
        what = f"{type(root).__name__}: {root}".splitlines()[0]
        if _is_the_trees(root):
            return _ended(options, CRASHED, what)
        # The tree and the stand-ins do not fit together: that says nothing about the tree.
        return _ended(options, NOT_SET_UP, f"this tree does not fit the scenario: {what}")
    return _ended(options, PASSED, "")


def _is_the_trees(error: BaseException) -> bool:
    """Say whether an engine would meet the error too: the device's, a race, a missing name."""
    if isinstance(error, WrongResult | ImportError):
        return True
    return isinstance(error, RuntimeError) and _DEVICE_ERROR.search(str(error)) is not None


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="capdoctor.capture.scenarios")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--as-torch")
    parser.add_argument("--run-dir", type=Path)
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, log: EngineLog) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise CannotExercise(_NO_TORCH)
    from capdoctor.capture.scenarios.run import run

    run(options.name, options.source.absolute(), _device(options), log)


def _device(options: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    if options.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise CannotExercise("there is no usable GPU on this machine")
        return contextlib.nullcontext()
    from capdoctor.capture.device import VirtualDevice

    return VirtualDevice(as_torch=options.as_torch, stop_at_first=True)


def _ended(options: argparse.Namespace, code: int, reason: str) -> int:
    outcome = {PASSED: "passed", CRASHED: "crashed", NOT_SET_UP: "not_set_up"}[code]
    if options.run_dir is not None:
        answer = {"scenario": options.name, "outcome": outcome, "reason": reason}
        (options.run_dir / "scenario.json").write_text(json.dumps(answer), encoding="utf-8")
    if code == NOT_SET_UP:
        sys.stdout.write(f"{SETUP_FAILED}{' '.join(reason.split())}\n")
    return code


def _leave(code: int) -> NoReturn:
    sys.exit(code)


if __name__ == "__main__":
    _leave(main())
