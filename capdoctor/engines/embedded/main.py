"""The child process: ``python -m capdoctor.engines.embedded.main SPEC.json``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from capdoctor.capture.engine_log import EngineLog
from capdoctor.engines.embedded import EXIT_CRASHED, EXIT_SETUP_FAILED, SETUP_FAILED
from capdoctor.engines.embedded.model_file import SetupFailed
from capdoctor.engines.embedded.settings import Settings
from capdoctor.errors import CapdoctorError


def main(arguments: list[str] | None = None) -> int:
    """Start the engine that the settings file describes; give the exit code."""
    [path] = sys.argv[1:] if arguments is None else arguments
    settings = Settings.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        return run_engine_core(settings, EngineLog(sys.stdout))
    except (SetupFailed, CapdoctorError) as error:
        sys.stdout.flush()
        sys.stdout.write(f"{SETUP_FAILED}{error}\n")
        return EXIT_SETUP_FAILED


def run_engine_core(settings: Settings, log: EngineLog) -> int:
    """Start the engine; an error of the model ends in a record with its traceback.

    Raises:
        SetupFailed: torch, the model file or the device cannot be used.
    """
    try:
        from capdoctor.capture.stacks import clean_exception
        from capdoctor.engines.embedded.engine import EngineCore
    except ImportError as error:  # a broken installation of torch
        raise SetupFailed(f"torch cannot be imported: {error}.") from error
    log.record(f"non-default args: {{'model': {settings.model!r}, 'mode': {settings.mode!r}}}")
    try:
        EngineCore(settings, log).start()
    except (SetupFailed, CapdoctorError):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - documented boundary: the answer
        log.failure("".join(traceback.format_exception(clean_exception(error))))
        return EXIT_CRASHED
    return 0


def leave(code: int) -> NoReturn:
    """End this process now: a model's threads and exit handlers have no say in it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a model may have closed it
            stream.flush()
    os._exit(code)


def _speak_utf8() -> None:
    """Write UTF-8 whatever the locale: a capture bar must not fail for a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    _speak_utf8()
    leave(main())
