"""The bundled fixes: every folder beside this file that holds a ``fix.toml``."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import capdoctor.vendored_fixes as house
from capdoctor.errors import CannotDo, UsageError
from capdoctor.vendored_fixes.contract import FixInfo, Room

METADATA = "fix.toml"


def list_fixes() -> tuple[FixInfo, ...]:
    """Give every bundled fix, sorted by id; reads metadata only, imports no room's code.

    Raises:
        CannotDo: a room's metadata cannot be used; says which file and why.
    """
    found = [
        _load(path)
        for folder in house.__path__
        for path in sorted(Path(folder).glob(f"*/{METADATA}"))
        if not path.parent.name.startswith("_")
    ]
    return tuple(sorted(found, key=lambda fix: fix.id))


def find_fix(name: str) -> FixInfo:
    """Give the fix called ``name``; ``sparse_mla`` and ``sparse-mla`` are the same.

    Raises:
        UsageError: there is no such fix; the hint names the nearest.
    """
    fixes = {fix.id: fix for fix in list_fixes()}
    wanted = name.strip().lower().replace("_", "-")
    if wanted in fixes:
        return fixes[wanted]
    close = difflib.get_close_matches(wanted, fixes, n=1)
    offer = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(fixes)}."
    raise UsageError(f"There is no bundled fix called {name!r}.", offer)


def load_room(fix: FixInfo) -> Room:
    """Import the code of a fix (still without LibCST, which its ``rewrite`` loads)."""
    return cast(Room, import_module(f"{house.__name__}.{fix.room}.fix"))


def _load(path: Path) -> FixInfo:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return FixInfo(**_values(data), room=path.parent.name)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise CannotDo(
            f"The metadata of the fix in {path.parent} cannot be used: {error}.",
            f"Compare {path.name} with the one in _template.",
        ) from error


def _values(data: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(FixInfo)} - {"room"}
    if unknown := sorted(set(data) - known):
        raise TypeError(f"unknown field {unknown[0]!r}")
    wrong = [name for name, value in data.items() if not _is_text(value)]
    if wrong:
        raise TypeError(f"{wrong[0]!r} is neither text nor a list of texts")
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }


def _is_text(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, str) for item in items)
