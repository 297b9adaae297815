"""One call of git: clean environment, no prompt, no hook, no optional lock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from capdoctor.errors import CannotDo

# A caller that is itself run by git (a hook, `git bisect run`) has these set for its repository.
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
_FOREIGN_MORE = ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE")
_QUIET = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ADVICE": "0",
}
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "advice.detachedHead=false"),
)


class GitFailed(CannotDo):
    """Git refused; the sentence is what git said, in one line, ``code`` its exit code."""

    def __init__(self, sentence: str, hint: str = "", code: int = 128) -> None:
        super().__init__(sentence, hint)
        self.code = code


def outside_git() -> dict[str, str]:
    """Return the caller's environment without what points at another repository."""
    drop = {*_FOREIGN, *_FOREIGN_MORE}
    return {name: value for name, value in os.environ.items() if name not in drop}


def git(
    folder: Path,
    *arguments: str,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return what git prints, decoded with replacement; ``env`` is added to its environment.

    Raises:
        GitFailed: git ended with an error, or is not installed.
    """
    return git_bytes(folder, *arguments, stdin=stdin, env=env).decode(errors="replace")


def git_bytes(
    folder: Path,
    *arguments: str,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Return what git prints, as it is.

    Raises:
        GitFailed: git ended with an error, or is not installed.
    """
    command = ["git", "-C", str(folder), *_SETTINGS, *arguments]
    given = None if stdin is None else stdin.encode()
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            env={**outside_git(), **_QUIET, **(env or {})},
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailed("git is not installed", "install git 2.30 or newer") from error
    if done.returncode:
        raise _failure(arguments, done.stderr.decode(errors="replace"), done.returncode)
    return done.stdout


def git_or_none(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, or None where it ends with an error."""
    try:
        return git(folder, *arguments)
    except GitFailed:
        return None


def _failure(arguments: tuple[str, ...], said: str, code: int) -> GitFailed:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    what = named[0].removeprefix("fatal: ").removeprefix("error: ") if named else "no message"
    return GitFailed(f"git {arguments[0]} failed: {what}", _hint(said), code)


def _hint(said: str) -> str:
    if "No space left on device" in said:
        return "free some disk space, then resume"
    if "dubious ownership" in said:
        return "run the `git config --global --add safe.directory` command that git suggests"
    if "could not read Username" in said or "Could not resolve host" in said:
        return "this is a partial clone and its remote cannot be reached; fetch the range first"
    return ""
