"""Check signature files against the schema, with a sentence for every fault.

A validator of our own (the schema is a flat table of kinds) instead of a JSON Schema library: rule
files of users are read at every start, and the sentence has to say what to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from capdoctor.diagnosis.pep440 import check_range
from capdoctor.diagnosis.tables import table
from capdoctor.model import STAGE_ORDER

_REQUIRED = ("id", "class", "when")
_PLATFORMS = frozenset({"cuda", "rocm", "cpu"})
_ENGINES = frozenset({"vllm", "sglang", "embedded", "other"})
_CAPS = frozenset({"likely", "possible"})
_KINDS = frozenset({"python", "native", "death"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return _is_text(value) or (
        isinstance(value, list) and bool(value) and all(_is_text(item) for item in value)
    )


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_codes(value: Any) -> bool:
    return _is_code(value) or (
        isinstance(value, list) and bool(value) and all(_is_code(item) for item in value)
    )


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


_KIND_OF: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a text"),
    "texts": (_is_texts, "a text or a list of texts"),
    "codes": (_is_codes, "a number or a list of numbers"),
    "flag": (lambda value: isinstance(value, bool), "true or false"),
    "number": (_is_code, "a number"),
    "table": (lambda value: isinstance(value, dict), "a table"),
    "tables": (_is_tables, "a list of tables"),
}


def check(content: dict[str, Any]) -> list[str]:
    """List what is wrong with the content of a signature file; empty when nothing is."""
    faults = _check_table(content, "signature", "")
    faults += [f"{key} is missing" for key in _REQUIRED if key not in content]
    if faults:
        return faults
    faults += _check_class(content)
    for part in ("when", "unless"):
        for number, condition in enumerate(content.get(part, []), 1):
            faults += _check_condition(condition, f"{part} {number}: ")
    for number, workaround in enumerate(content.get("workarounds", []), 1):
        faults += _check_table(workaround, "workaround", f"workaround {number}: ")
        faults += [
            f"workaround {number}: {key} is missing"
            for key in ("do", "cost")
            if key not in workaround
        ]
    if "known" in content:
        faults += _check_known(content["known"])
    return faults + _check_versions(content.get("affects", {}), "affects: ")


def _check_table(content: dict[str, Any], kind: str, where: str) -> list[str]:
    fields = table("schema")[kind]
    faults = []
    for key, value in content.items():
        if key not in fields:
            faults.append(f"{where}{key} is not a field of a {kind}")
            continue
        holds, wanted = _KIND_OF[fields[key]]
        if not holds(value):
            faults.append(f"{where}{key} must be {wanted}")
    return faults


def _check_class(content: dict[str, Any]) -> list[str]:
    if content["class"] in table("classes")["classes"]:
        return []
    return [f"class {content['class']} is not in the taxonomy"]


def _check_known(known: dict[str, Any]) -> list[str]:
    faults = _check_table(known, "known", "known: ")
    if not faults and not str(known.get("url", "")).startswith("https://"):
        faults.append("known: url must start with https://")
    return faults


def _check_condition(condition: dict[str, Any], where: str) -> list[str]:
    faults = _check_table(condition, "condition", where)
    if faults:
        return faults
    if not condition:
        return [f"{where}an empty condition would fit everything"]
    allowed = {
        "stage": frozenset(STAGE_ORDER),
        "stage_not": frozenset(STAGE_ORDER),
        "platform": _PLATFORMS,
        "engine": _ENGINES,
        "kind": _KINDS,
        "at_most": _CAPS,
    }
    for key, values in allowed.items():
        listed = condition.get(key, [])
        for value in listed if isinstance(listed, list) else [listed]:
            if value not in values:
                faults.append(f"{where}{key} does not know {value!r}")
    for key in ("regex", "source_regex"):
        faults += _check_regexes(condition.get(key, []), where)
    return faults + _check_versions(condition.get("versions", {}), where)


def _check_regexes(patterns: Any, where: str) -> list[str]:
    faults = []
    for pattern in patterns if isinstance(patterns, list) else [patterns]:
        try:
            re.compile(pattern)
        except re.error as error:
            faults.append(f"{where}regex {pattern!r}: {error}")
    return faults


def _check_versions(versions: dict[str, Any], where: str) -> list[str]:
    faults = []
    for package, spec in versions.items():
        try:
            check_range(str(spec))
        except ValueError as error:
            faults.append(f"{where}{package}: {error}")
    return faults
