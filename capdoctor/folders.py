"""The user's folders by the XDG rules: what outlives a command, and what can be made again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def state_folder() -> Path:
    """Give capdoctor's folder for what should outlive a command (XDG_STATE_HOME)."""
    return _user_folder("XDG_STATE_HOME", ".local/state") / "capdoctor"


def cache_folder() -> Path:
    """Give capdoctor's folder for what can be made again (XDG_CACHE_HOME)."""
    return _user_folder("XDG_CACHE_HOME", ".cache") / "capdoctor"


def _user_folder(variable: str, below_home: str) -> Path:
    """Give a folder of the user's; a user without a home has one in the temporary folder.

    A relative value is ignored, as the XDG rules say: it would mean another folder, and lost
    backups, for every working directory.
    """
    given = Path(os.environ.get(variable, ""))
    if given.parts[:1] and given.parts[0].startswith("~"):
        given = given.expanduser()
    if given.is_absolute():
        return given
    try:
        return Path.home() / below_home
    except RuntimeError:  # a container often runs under a number that no passwd entry has
        return Path(tempfile.gettempdir()) / f"capdoctor-{os.getuid()}" / below_home
