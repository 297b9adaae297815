"""Versions and ranges after PEP 440, without importing ``packaging`` (8 ms) at every start.

Development, nightly and local builds are ordinary citizens here: ``0.29.1rc1.dev187+g3c1f0a9d2``
lies between 0.29.0 and 0.30.0, and ``0.30.0rc1`` is not "less than 0.30.0" in a range that excludes
0.30.0 (PEP 440, "exclusive ordered comparison").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_Key: TypeAlias = tuple[
    int, tuple[int, ...], tuple[float, float], float, float, tuple[tuple[int, int | str], ...]
]
_VERSION = r"""(?xi)\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_n>\d*))?
    (?:-(?P<post_implicit>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*))?
    (?:[-_.]?dev[-_.]?(?P<dev>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*"""
_PRE_ORDER = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_CLAUSE = r"\s*(~=|===?|!=|<=|>=|<|>)\s*([^,\s]+)\s*"
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Version:
    """One parsed version; ``key`` orders it, the local part last."""

    release: tuple[int, ...]
    is_pre: bool
    is_post: bool
    local: str | None
    key: _Key

    @property
    def public(self) -> _Key:
        """The key without the local part."""
        return (*self.key[:5], ())


def _trim(release: tuple[int, ...]) -> tuple[int, ...]:
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return release


def parse(text: str) -> Version | None:
    """Parse a version, or give None for what is none."""
    found = re.fullmatch(_VERSION, text)
    if found is None:
        return None
    part = found.groupdict()
    release = tuple(int(number) for number in part["release"].split("."))
    has_post = part["post"] is not None or part["post_implicit"] is not None
    post = float(part["post"] or part["post_implicit"] or 0) if has_post else -_INFINITY
    dev = float(part["dev"] or 0) if part["dev"] is not None else _INFINITY
    if part["pre"]:
        pre = (float(_PRE_ORDER[part["pre"].lower()]), float(part["pre_n"] or 0))
    elif part["dev"] is not None and not has_post:
        pre = (-_INFINITY, 0.0)
    else:
        pre = (_INFINITY, 0.0)
    local = part["local"].lower() if part["local"] else None
    key: _Key = (int(part["epoch"] or 0), _trim(release), pre, post, dev, _local_key(local))
    is_pre = part["pre"] is not None or part["dev"] is not None
    return Version(release, is_pre, has_post, local, key)


def _local_key(local: str | None) -> tuple[tuple[int, int | str], ...]:
    if local is None:
        return ()
    parts = re.split(r"[-_.]", local)
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in parts)


def contains(spec: str, text: str) -> bool:
    """Say whether a version lies in a range such as ``>=0.25,<0.30``; "" holds every version.

    Pre-releases count like any other version: a crash of a nightly is a crash.

    Raises:
        ValueError: the range is malformed.
    """
    version = parse(text)
    checked = [_parse_clause(clause) for clause in spec.split(",") if clause.strip()]
    return version is not None and all(_holds(op, bound, version) for op, bound in checked)


def check_range(spec: str) -> None:
    """Raise ValueError when a range is malformed."""
    for clause in spec.split(","):
        if clause.strip():
            _parse_clause(clause)


def _parse_clause(clause: str) -> tuple[str, str]:
    found = re.fullmatch(_CLAUSE, clause)
    if found is None:
        raise ValueError(f"not a version range: {clause.strip()!r}")
    op, bound = found.groups()
    prefix = bound.endswith(".*")
    plain = bound[:-2] if prefix else bound
    if parse(plain) is None or (prefix and op not in {"==", "!="}):
        raise ValueError(f"not a version range: {clause.strip()!r}")
    return op, bound


def _holds(op: str, bound_text: str, version: Version) -> bool:
    if bound_text.endswith(".*"):
        inside = _same_prefix(bound_text[:-2], version)
        return inside if op == "==" else not inside
    bound = parse(bound_text)
    if bound is None:
        return False
    mine = version.key if bound.local else version.public
    if op in {"==", "==="}:
        return mine == bound.key
    if op == "!=":
        return mine != bound.key
    if op == "~=":
        prefix = ".".join(str(number) for number in bound.release[:-1])
        return version.public >= bound.key and _same_prefix(prefix, version)
    return _ordered(op, version, bound)


def _ordered(op: str, version: Version, bound: Version) -> bool:
    if op == "<=":
        return version.public <= bound.key
    if op == ">=":
        return version.public >= bound.key
    same_base = _trim(version.release) == _trim(bound.release)
    if op == "<":
        # A pre-release of V is not < V; the pre-releases of V.post1 are only its own.
        same = version.key[:4] == bound.key[:4] if bound.is_post else same_base
        excluded = version.is_pre and not bound.is_pre and same
        return version.public < bound.key and not excluded
    post_of_bound = (
        version.is_post
        and not bound.is_post
        and version.key[:3] == bound.key[:3]
        and bound.key[4] == _INFINITY
    )
    local_of_bound = version.local is not None and version.public == bound.key
    excluded = post_of_bound or local_of_bound
    return version.public > bound.key and not excluded


def _same_prefix(prefix: str, version: Version) -> bool:
    wanted = tuple(int(number) for number in prefix.split("."))
    padded = version.release + (0,) * (len(wanted) - len(version.release))
    return padded[: len(wanted)] == wanted
