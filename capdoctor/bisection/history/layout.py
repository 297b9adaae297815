"""Which paths of a repository matter to an engine that runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capdoctor.bisection.history.gitcall import git_or_none
from capdoctor.bisection.history.mirror import Mirror


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one known repository; see ``layouts.toml`` for what each list means."""

    name: str
    package: str
    python: tuple[str, ...]
    native: tuple[str, ...]
    environment: tuple[str, ...]
    host_only: tuple[str, ...]

    @property
    def ships(self) -> tuple[str, ...]:
        """Every path whose change can change how the engine behaves."""
        return (*self.python, *self.native, *self.environment)


@cache
def layouts() -> tuple[Layout, ...]:
    """Return the layouts that are known."""
    text = files(__package__).joinpath("layouts.toml").read_text()
    return tuple(
        Layout(
            name,
            table["package"],
            tuple(table["python"]),
            tuple(table["native"]),
            tuple(table["environment"]),
            tuple(table["host_only"]),
        )
        for name, table in tomllib.loads(text).items()
    )


def layout_of(mirror: Mirror, sha: str) -> Layout | None:
    """Return the layout of the repository at a commit, None for one that is not known."""
    for layout in layouts():
        path = f"{layout.package}/__init__.py"
        if git_or_none(mirror.folder, "cat-file", "-e", f"{sha}:{path}") is not None:
            return layout
    return None
