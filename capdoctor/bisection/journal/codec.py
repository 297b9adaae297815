"""Frozen dataclasses to JSON and back, by their type hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from capdoctor.model import Json

Kind = TypeVar("Kind")


def encode(value: Any) -> Json:
    """Return ``value`` as JSON; paths become text, enums their value, dataclasses objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"cannot be written to the journal: {type(value).__name__}")


def decode(kind: type[Kind], data: Mapping[str, Json]) -> Kind:
    """Return the dataclass that ``data`` was encoded from; unknown keys are ignored.

    A field that ``data`` lacks takes its default, so that an older journal can be resumed.

    Raises:
        TypeError: a field without default is missing.
        ValueError: a value does not fit its enum.
    """
    hints = get_type_hints(kind)
    known = {name: _value(hints[name], data[name]) for name in hints if name in data}
    return kind(**known)


def _value(hint: Any, data: Json) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _optional(hint, data)
    if origin is tuple:
        item = get_args(hint)[0]
        return tuple(_value(item, one) for one in data) if isinstance(data, list) else ()
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(data, dict):
        return decode(hint, data)
    if isinstance(hint, type) and issubclass(hint, (Enum, Path)) and isinstance(data, str):
        return hint(data)
    return data


def _optional(hint: Any, data: Json) -> Any:
    if data is None:
        return None
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return _value(kinds[0], data) if len(kinds) == 1 else data
