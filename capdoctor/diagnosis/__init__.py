"""What a log says about a crash: root cause, class, stage, component, known issue, fingerprint.

`diagnose` reads one log, `diagnose_all` every log of a folder or archive; `same_crash` compares two
diagnoses and `group` sorts many. Signatures are data under ``signatures/``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capdoctor.diagnosis.compare import Comparison, CrashGroup, group, same_crash
    from capdoctor.diagnosis.diagnosing import diagnose, diagnose_all, diagnose_parsed

__all__ = [
    "Comparison",
    "CrashGroup",
    "diagnose",
    "diagnose_all",
    "diagnose_parsed",
    "group",
    "same_crash",
]

_HOME = {
    "Comparison": "compare",
    "CrashGroup": "compare",
    "group": "compare",
    "same_crash": "compare",
    "diagnose": "diagnosing",
    "diagnose_all": "diagnosing",
    "diagnose_parsed": "diagnosing",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: a comparison needs no log reader."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
