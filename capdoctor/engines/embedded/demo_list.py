"""The bundled demos: small models whose code is wrong in the way that a real project's was."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capdoctor.errors import UsageError

_FOLDER = Path(__file__).resolve().parent / "demos"
PREFIX = "demo/"


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo: its name after ``demo/``, what it shows, and the bytes of memory it is given."""

    name: str
    title: str
    memory: int | None = None


@cache
def list_demos() -> tuple[Demo, ...]:
    """All demos in the order in which they are shown."""
    rows = tomllib.loads((_FOLDER / "demos.toml").read_text(encoding="utf-8"))["demo"]
    return tuple(Demo(row["name"], row["title"], row.get("memory")) for row in rows)


def find_demo(model: str) -> Demo:
    """The demo that ``demo/NAME`` means.

    Raises:
        UsageError: there is none of that name.
    """
    name = model.removeprefix(PREFIX)
    for demo in list_demos():
        if demo.name == name:
            return demo
    names = [demo.name for demo in list_demos()]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean demo/{near[0]}?" if near else "List them with --list-demos."
    raise UsageError(f"There is no demo {name!r}.", hint)


def demo_file(name: str) -> Path:
    """The source of a demo."""
    return _FOLDER / f"{name.replace('-', '_')}.py"
