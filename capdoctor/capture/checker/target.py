"""What is to be checked, as the command line names it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from capdoctor.errors import CannotDo, UsageError

_FORMS = "use FILE.py, FILE.py::function or package.module:function"


@dataclass(frozen=True, slots=True)
class Target:
    """One target: a file or an importable module, and a function or (None) all ``captured…``."""

    text: str
    path: Path | None
    module: str | None
    function: str | None


def parse_target(text: str) -> Target:
    """Give the target that the text names.

    Raises:
        UsageError: the text has none of the three forms.
        CannotDo: the file does not exist.
    """
    file, separator, function = text.partition("::")
    if separator or file.endswith(".py"):
        if separator and not function:
            raise UsageError(f"{text} names no function", _FORMS)
        path = Path(file)
        if not path.is_file():
            raise CannotDo(f"there is no file {file}", _FORMS)
        return Target(text, path, None, function or None)
    module, separator, function = text.partition(":")
    if not separator or not module or not function:
        raise UsageError(f"{text} is neither a Python file nor module:function", _FORMS)
    _require_module(module)
    return Target(text, None, module, function)


def _require_module(module: str) -> None:
    try:
        found = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        found = None
    if found is None:
        hint = "run where it can be imported, or name its file"
        raise CannotDo(f"there is no module {module}", hint)
