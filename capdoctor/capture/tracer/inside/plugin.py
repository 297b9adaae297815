"""How a plug-in loader starts the tracer: the entry point ``capdoctor_tracer.plugin:register``.

It imports no torch where there is none yet, and touches no device: engines call plug-ins in
processes that fork later, and in some that never capture.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .guard import Guard
from .journal import Journal

FOLDER = "CAPDOCTOR_TRACE_DIR"
_installed: Any | None = None


def register() -> None:
    """Install the tracer if ``CAPDOCTOR_TRACE_DIR`` says where to write. Never raises."""
    folder = os.environ.get(FOLDER)
    if not folder or _installed is not None:
        return
    guard = Guard(Journal(folder))
    if "torch" in sys.modules:
        guard.run(_install, folder)
    else:
        guard.run(_when_imported, folder)


def _install(folder: str) -> None:
    global _installed  # noqa: PLW0603 - once a process
    from .tracer import Tracer

    tracer = Tracer(folder)
    tracer.install()
    os.register_at_fork(after_in_child=tracer.watch.forget)
    _installed = tracer


def _when_imported(folder: str) -> None:
    from .deferred import after_import

    after_import("torch", lambda: Guard(Journal(folder)).run(_install, folder))
