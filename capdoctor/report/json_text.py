"""Answers as the JSON of the contract."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from capdoctor.model import Json

# ``class`` is a keyword in Python, so the values call it otherwise.
_JSON_NAMES = {"crash_class": "class"}


def to_json(value: Any) -> Json:
    """Turn frozen values into JSON: records to objects, enumerations to their value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            _JSON_NAMES.get(field.name, field.name): to_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Enum):
        return to_json(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def document(schema: str, value: Any) -> str:
    """Give one JSON object with its schema first, ASCII only, ready for stdout."""
    body = to_json(value)
    if not isinstance(body, dict):
        raise TypeError("a JSON document of the contract is an object")
    return json.dumps({"schema": schema, **body}, indent=2)
