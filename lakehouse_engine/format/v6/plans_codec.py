"""Converts plans and outcomes of table services between dataclasses and Avro containers.

A class is written with the schema of its own name; its fields are the schema's, in snake case.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.v6.metadata_avro import decode_record, encode_record

Plan = TypeVar("Plan")

_UNDERSCORE = re.compile(r"_([a-z])")
_IRREGULAR = {"rollback_requests": "RollbackRequests"}
"""Attributes whose Avro name is not the attribute in camel case."""


def encode_plan(plan: Any, *, sealed: bool = True, note: str | None = None) -> bytes:
    """The Avro container of any record of `model.plans` or of a savepoint. Parameters as `encode_record`."""
    return encode_record(type(plan).__name__, _to_avro(plan), sealed=sealed, note=note)


def decode_plan(cls: type[Plan], data: bytes) -> Plan:
    """Decode a plan. `cls` is a dataclass with a schema of the same name. Raises `CorruptInstantError` and `MetadataError` as
    `decode_record`.
    """
    kind: Any = cls
    plan = _reader_of(kind)(decode_record(cls.__name__, data))
    if not isinstance(plan, cls):
        raise MetadataError(f"a {cls.__name__} decodes to {type(plan).__name__}")
    return plan


def _to_avro(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {avro_name(entry.name): _to_avro(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, dict):
        return {key: _to_avro(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_to_avro(item) for item in value]
    return value


def avro_name(attribute: str) -> str:
    """Name of the Avro member for an attribute."""
    return _IRREGULAR.get(attribute) or _UNDERSCORE.sub(lambda match: match[1].upper(), attribute)


@cache
def _reader_of(hint: Any) -> Callable[[Any], Any]:
    """Function that converts an Avro value to the type that a field declares."""
    if is_dataclass(hint):
        return _record_reader(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (other,) = (argument for argument in arguments if argument is not type(None))
        return _optional(_reader_of(other))
    if origin is tuple:
        return _sequence(_reader_of(arguments[0]))
    if origin is dict:
        return _mapping(_reader_of(arguments[1]))
    return _unchanged


def _record_reader(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls)
    readers = [(entry.name, avro_name(entry.name), _reader_of(hints[entry.name])) for entry in fields(cls)]
    return lambda record: cls(**{attribute: read(record[name]) for attribute, name, read in readers})


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _sequence(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: tuple(read(value) for value in values)


def _mapping(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: {key: read(value) for key, value in values.items()}


def _unchanged(value: Any) -> Any:
    return value
