"""Reproduce, name, bisect and repair the start-up crashes of inference engines."""

from __future__ import annotations

__version__ = "0.1.0"
