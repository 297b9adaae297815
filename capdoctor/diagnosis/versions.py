"""Which versions a log gives away, each with how it is known.

``read: …`` is printed in the log; ``inferred: …`` follows from line numbers (the tables in
``data/call_sites.toml`` and ``data/allocator_lines.toml``) or from what a release pins.
"""

from __future__ import annotations

from collections.abc import Iterable

from capdoctor.diagnosis.pep440 import parse
from capdoctor.diagnosis.tables import table
from capdoctor.logs import AllocatorAssert, CallSite, Run
from capdoctor.model import VersionClaim

_CORE_FAILED = ("EngineCore failed to start", "EngineCore hit an exception")
_CORE_FATAL = ("EngineCore encountered a fatal error",)
_WORKER_HIT = ("WorkerProc hit an exception",)
_WORKER_FAILED = ("WorkerProc failed to start",)


def versions_of(run: Run) -> dict[str, VersionClaim]:
    """Give the versions of every package that the run names or betrays."""
    claims: dict[str, VersionClaim] = {}
    for hint in run.versions:
        claims.setdefault(hint.package, VersionClaim(hint.value, f"read: {hint.how}"))
    if "vllm" not in claims:
        inferred = _by_call_sites(run.call_sites)
        if inferred is not None:
            claims["vllm"] = inferred
    if "torch" not in claims:
        torch = _by_asserts(run.asserts) or _by_pin(claims.get("vllm"))
        if torch is not None:
            claims["torch"] = torch
    return claims


def _by_call_sites(sites: Iterable[CallSite]) -> VersionClaim | None:
    rows = table("call_sites")["rows"]
    possible = [str(row[0]) for row in rows]
    seen = []
    for site in sites:
        column, lineno = _column(site)
        fitting = [str(row[0]) for row in rows if column and row[column] == lineno]
        if fitting:
            kept = [release for release in possible if release in fitting]
            possible = kept or possible
            seen.append(f"{site.file.rsplit('/', 1)[-1]}:{site.lineno}")
    if not seen:
        return None
    value = "≈" + possible[0] if len(possible) == 1 else f"≈{possible[0]} to {possible[-1]}"
    return VersionClaim(value, f"inferred: {', '.join(dict.fromkeys(seen))} is a line of it")


def _column(site: CallSite) -> tuple[int | None, int]:
    name = site.file.rsplit("/", 1)[-1]
    if name == "core.py" and site.message.startswith(_CORE_FAILED):
        return 1, site.lineno
    if name == "core.py" and site.message.startswith(_CORE_FATAL):
        return 1, site.lineno - int(table("call_sites")["fatal_offset"])
    if name == "multiproc_executor.py" and site.message.startswith(_WORKER_HIT):
        return 2, site.lineno
    if name == "multiproc_executor.py" and site.message.startswith(_WORKER_FAILED):
        return 3, site.lineno
    return None, site.lineno


def _by_asserts(asserts: Iterable[AllocatorAssert]) -> VersionClaim | None:
    for found in asserts:
        for row in table("allocator_lines")["asserts"]:
            release = row["lines"].get(str(found.lineno))
            if release and row["expression"] in found.expression and row["file"] in found.file:
                where = f"{row['file']}:{found.lineno}"
                return VersionClaim(str(release), f"inferred: {where} is a line of it")
    return None


def _by_pin(vllm: VersionClaim | None) -> VersionClaim | None:
    if vllm is None:
        return None
    mine = parse(vllm.value.lstrip("≈").split(" ")[0])
    pinned = None
    for release, torch in table("call_sites")["torch_pins"]:
        since = parse(release)
        if mine is not None and since is not None and mine.release >= since.release:
            pinned = torch
    if pinned is None:
        return None
    return VersionClaim(str(pinned), f"inferred: vLLM {vllm.value} pins it")


def plain(claims: dict[str, VersionClaim]) -> dict[str, str]:
    """The versions as values to compare with ranges; what is inferred as a span is left out."""
    return {
        name: claim.value.lstrip("≈") for name, claim in claims.items() if " to " not in claim.value
    }
