"""The boundary at which the tracer's own faults end: written down once, then it steps aside."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .journal import Journal


class Guard:
    """Runs the tracer's own code so that no fault of it reaches the traced program.

    ``aside`` is True from the first fault on; every hook looks at it and does nothing more.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.aside = False

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the tracer; None if it failed or the tracer has stepped aside."""
        if self.aside:
            return None
        try:
            return function(*args)
        except Exception:  # noqa: BLE001 - the documented boundary
            self.fault()
            return None

    def clean_up(self, function: Callable[..., Any], *args: Any) -> None:
        """Call what takes a hook off, also after the tracer has stepped aside."""
        try:
            function(*args)
        except Exception:  # noqa: BLE001 - the documented boundary
            self.fault()

    def fault(self) -> None:
        """Write the fault that is being handled down, and step aside.

        That the stack is full is the program's doing: this look failed, the next may do.
        """
        # Nothing may come out of here: nowhere to write, no room for a call.
        with contextlib.suppress(Exception):
            if self.aside or isinstance(sys.exc_info()[1], RecursionError):
                return
            self.aside = True
            self.journal.write("fault", text=traceback.format_exc()[-4000:])
