"""An observation filled in with what the diagnosis says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.traceback import frames_of
from capdoctor.diagnosis import diagnose
from capdoctor.model import Diagnosis, RunFacts

# After these the device may refuse everything until it is reset.
_STICKY = frozenset({"capture_illegal_memory_access"})
# A device that is wedged, lost or full looks like this as well as a fault of the commit's.
_SUSPECT = frozenset(
    {
        "native_crash",
        "startup_hang",
        "device_not_found",
        "driver_incompatible",
        "gpu_memory_busy",
        "weights_oom",
        "profile_oom",
        "capture_oom",
    }
)
# Out of memory, busy, no or an invalid device, failed initialisation, ECC, NVLink, unknown: driver
# errors that a device in trouble gives as well.
_SUSPECT_CODES = frozenset({2, 3, 46, 100, 101, 214, 220, 226, 304, 801, 802, 803, 804, 999})


def diagnosed(base: Observation, saw: Saw, log: Path, facts: RunFacts | None = None) -> Observation:
    """Return ``base`` with the diagnosis of its log; without one where the log is empty."""
    base = replace(base, saw=saw, log=str(log))
    if not log.stat().st_size:
        return base
    return with_diagnosis(base, diagnose(log, facts=facts))


def with_diagnosis(base: Observation, found: Diagnosis) -> Observation:
    """Return ``base`` with signature, class, stage and frames of a diagnosis."""
    error, root = found.error, found.root_frame
    return replace(
        base,
        signature=found.fingerprint,
        loose=found.fingerprint_loose,
        title=title_of(found),
        stage=found.stage,
        crash_class=found.crash_class,
        root=root,
        frames=frames_of(Path(base.log), root) if base.log else (),
        sticky=bool(error and error.sticky) or found.crash_class in _STICKY,
        suspect=base.suspect or base.saw is Saw.HANG or _is_suspect(found),
    )


def _is_suspect(found: Diagnosis) -> bool:
    error = found.error
    out_of_memory = bool(error and error.type and "OutOfMemory" in error.type)
    code = error.code if error else None
    return found.crash_class in _SUSPECT or code in _SUSPECT_CODES or out_of_memory


def title_of(found: Diagnosis) -> str:
    """Return the crash in one line: error, first line of its message, function."""
    if found.error is None:
        return found.crash_class
    message = found.error.message.split("\n", 1)[0][:120]
    where = f" in {found.root_frame.function}" if found.root_frame else ""
    return f"{found.error.type or 'error'}: {message}{where}"
