"""The capture tracer: names the first operation that broke a stream capture.

``inside`` runs in the traced processes; the rest reads what it wrote.
"""

from __future__ import annotations

from capdoctor.capture.tracer.read import TRACER_PACKAGE, read_trace

__all__ = ["TRACER_PACKAGE", "read_trace"]
