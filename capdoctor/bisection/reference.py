"""The crash that ``--reference`` names: a run's folder, or a log."""

from __future__ import annotations

import json
from pathlib import Path

from capdoctor.bisection.verdicts import Reference
from capdoctor.diagnosis import diagnose, run_files
from capdoctor.errors import CannotDo
from capdoctor.model import Diagnosis, Verdict


def read_reference(path: Path) -> Reference:
    """Return the crash of an earlier run or of a log.

    Raises:
        CannotDo: it cannot be read, or holds no crash with a signature.
    """
    if path.is_dir():
        outcome = path / run_files.OUTCOME
        if outcome.exists():
            return _of_run(outcome)
        return _of_diagnosis(diagnose(path / run_files.LOG), path)
    return _of_diagnosis(diagnose(path), path)


def _of_run(outcome: Path) -> Reference:
    """Read the answer that a run has written: what it saw of its processes is in there too."""
    try:
        told = json.loads(outcome.read_text(encoding="utf-8"))
        found = told["diagnosis"] or {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotDo(f"{outcome} is not the outcome of a run", "give the run's folder") from error
    signature, root = _of_a_log(found.get("fingerprint")), found.get("root_frame") or {}
    hang = told.get("outcome") == "hung"
    if signature is None and not hang:
        raise _no_crash(outcome.parent)
    title = str((found.get("error") or {}).get("message") or found.get("class") or "")
    return Reference(
        signature,
        found.get("fingerprint_loose"),
        title.split("\n", 1)[0],
        hang,
        found.get("class"),
        root.get("function"),
        found.get("stage"),
    )


def _of_a_log(fingerprint: str | None) -> str | None:
    """Give the fingerprint unless only a traced run can have it: probes are not traced."""
    return None if fingerprint is None or fingerprint.startswith("t1:") else fingerprint


def _of_diagnosis(found: Diagnosis, path: Path) -> Reference:
    hang = found.verdict is Verdict.STARTUP_HANG
    signature = _of_a_log(found.fingerprint)
    if signature is None and not hang:
        raise _no_crash(path)
    return Reference(
        signature,
        found.fingerprint_loose,
        found.error.message.split("\n", 1)[0] if found.error else found.crash_class,
        hang,
        found.crash_class,
        found.root_frame.function if found.root_frame else None,
        found.stage,
    )


def _no_crash(path: Path) -> CannotDo:
    return CannotDo(
        f"{path} shows no crash that could be looked for",
        "give the log of the crash itself, or leave --reference out",
    )
