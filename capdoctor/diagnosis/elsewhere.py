"""A known fault in somebody else's code: the embedded demos, a model file, a copy of a function.

A signature of a known issue fits by the shape of the failure: the error, the function, the source
line. Where no frame belongs to the package that the report is about, the report tells what went
wrong and not whose fault it is: its version ranges and its workarounds are not the code's.
"""

from __future__ import annotations

from dataclasses import replace

from capdoctor.diagnosis.frames import path_of, root_frame
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.signature import Signature

# The demos re-enact a known fault on purpose, so the bundled fix belongs to them.
_DEMOS = "demo/"
_EMBEDDED = "capdoctor/engines/embedded/"


def fitted(signature: Signature | None, chain: tuple[Incident, ...]) -> Signature | None:
    """Give the signature as it may speak of this crash; ``chain`` is the root's, itself first."""
    if signature is None or signature.known is None or not _is_elsewhere(signature, chain):
        return signature
    packages = " and ".join(package for package, _ in signature.affects)
    title = f"The same fault as one reported for {packages}: {signature.title}"
    frame = root_frame(chain[0])
    demo = frame is not None and frame.file.startswith(_DEMOS)
    return replace(
        signature,
        component=None,
        known=replace(signature.known, title=title, introduced_by=None, fixed_in=None),
        affects=(),
        workarounds=(),
        cause=signature.cause if demo else "",
        fix=signature.fix if demo else None,
    )


def engine_of(named: str | None, chain: tuple[Incident, ...]) -> str | None:
    """The engine that ran, ``embedded`` by its frames: its log lines are those of vLLM."""
    frames = (path_of(frame) for one in chain for frame in one.frames)
    return "embedded" if any(_EMBEDDED in path for path in frames) else named


def _is_elsewhere(signature: Signature, chain: tuple[Incident, ...]) -> bool:
    homes = tuple(f"{package}/" for package, _ in signature.affects)
    frames = [frame for one in chain for frame in one.frames]
    return bool(homes and frames) and not any(path_of(f).startswith(homes) for f in frames)
