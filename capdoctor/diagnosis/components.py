"""Who has to change something for the crash to go away."""

from __future__ import annotations

from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.tables import table
from capdoctor.model import Frame

# Whose fault it is where a class says "the engine's". Under the embedded engine it is the model's.
_OF_ENGINE = {"sglang": "sglang", "embedded": "other"}


def package_of(frame: Frame) -> str | None:
    """The component whose code a frame is, or None for code of others."""
    for component, globs in table("components")["rows"]:
        if frame_fits(frame.file, frame.function, tuple(globs)):
            return str(component)
    return None


def component_of(
    crash_class: str, signature: Signature | None, frame: Frame | None, engine: str | None
) -> str | None:
    """Give the component: the signature's word, else the root frame's package, else the class's."""
    if signature is not None and signature.component:
        return signature.component
    row = table("classes")["classes"].get(crash_class, {"component": "other", "frame": True})
    default = str(row["component"]) or None
    if row.get("frame") and frame is not None:
        package = package_of(frame)
        if package is not None:
            return package
        if default == "vllm":
            return "other"
    if default == "vllm":
        return _OF_ENGINE.get(engine or "", default)
    return default
