"""Where signatures come from: the bundled ones, the user's folder, and ``--rules`` folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from capdoctor.diagnosis.signature import Signature, build
from capdoctor.diagnosis.tables import bundled_signatures
from capdoctor.errors import UsageError

# A file of one's own wins over a bundled signature that fits as well.
_OWN_BONUS = 40
_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Rules:
    """The signatures to try, and a sentence for every rule file that could not be used."""

    signatures: tuple[Signature, ...]
    warnings: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def bundled() -> tuple[Signature, ...]:
    """The signatures that ship with capdoctor (checked by a test, not at every start)."""
    return tuple(build(content, name) for name, content in bundled_signatures())


def user_folder() -> Path:
    """The folder of the user's own rules: ``$XDG_CONFIG_HOME/capdoctor/rules``."""
    # expanduser leaves the tilde where nobody knows a home: then there is no such folder.
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return Path(config) / "capdoctor" / "rules"


def load(folders: Sequence[Path] = ()) -> Rules:
    """Load every signature: bundled, the user's, and those of the given folders or files.

    A broken file is skipped; its warning names the file and what is wrong with it.

    Raises:
        UsageError: a folder that was asked for does not exist.
    """
    for folder in folders:
        if not os.path.exists(folder):  # noqa: PTH110 - Path's raises where access is denied
            raise UsageError(f"There is no rules folder {folder}.", "Check the path after --rules.")
    own: list[Signature] = []
    warnings: list[str] = []
    for folder in (user_folder(), *folders):
        try:
            files = _rule_files(folder)
        except OSError as error:
            warnings.append(f"rules folder {folder} skipped: {error.strerror}")
            continue
        for file in files:
            loaded = read_rule(file)
            if isinstance(loaded, str):
                warnings.append(loaded)
            else:
                own.append(loaded)
    replaced = {signature.id for signature in own}
    kept = tuple(signature for signature in bundled() if signature.id not in replaced)
    return Rules((*own, *kept), tuple(warnings))


def _rule_files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.rglob("*.toml") if path.is_file())


def read_rule(file: Path) -> Signature | str:
    """Read one rule file: the signature, or the sentence that says why it is skipped."""
    import tomllib  # only rules of the user's own are read as TOML

    from capdoctor.diagnosis.schema import check  # most users have no rules of their own

    try:
        if file.stat().st_size > _MAX_BYTES:
            return f"rule file {file} skipped: larger than {_MAX_BYTES // 1024} KiB"
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return f"rule file {file} skipped: {error}"
    faults = check(content)
    if faults:
        return f"rule file {file} skipped: {'; '.join(faults)}"
    content["priority"] = content.get("priority", 0) + _OWN_BONUS
    return build(content, str(file))
