"""Checks arguments of public methods: wrong kinds are refused here, before anything else happens."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import wraps
from typing import Any, TypeVar

from lakehouse_engine.errors import OptionError

Kind = TypeVar("Kind")
Check = Callable[[str, Any], Any]

_MOST = 2**63 - 1
_PATHS = ("path", "warehouse")
_SECRETS = "storage_options"
"""Arguments whose values are never shown."""
_CHECKED_WHERE_STORED = ("name", "comment", "user")
"""Names and notes have stricter rules elsewhere, with their own errors."""


def _wrong(name: str, value: Any, expected: str) -> OptionError:
    shown = "" if name.startswith(_SECRETS) else f" {_short(value)}"
    return OptionError(f"{name} is {expected}, not {type(value).__name__}{shown}")


def _short(value: Any) -> str:
    try:
        text = ascii(value)
    except Exception as error:  # noqa: BLE001 - the object's own code; the refusal must name it all the same
        return f"(whose text cannot be had: {type(error).__name__})"
    return text if len(text) <= 80 else f"{text[:80]}..."


def text(name: str, value: Any) -> str:
    """Text that can be stored: Unicode without surrogates, and without NUL."""
    if name in _PATHS and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    if name not in _CHECKED_WHERE_STORED and ("\0" in value or any("\ud800" <= one <= "\udfff" for one in value)):
        shown = "..." if name.startswith(_SECRETS) else _short(value)
        raise OptionError(f"{name}={shown} holds a character that no name or text can have (NUL, or half of a pair)")
    return value


def flag(name: str, value: Any) -> bool:
    """True or false, including NumPy's."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise _wrong(name, value, "True or False")


def count(name: str, value: Any) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong(name, value, "a whole number")
    try:
        number = value.__index__()
    except TypeError as error:
        raise _wrong(name, value, "a whole number") from error
    if not 0 <= number <= _MOST:
        raise _wrong(name, value, "a whole number, 0 or more")
    return int(number)


def texts(name: str, value: Any) -> list[str]:
    """A list of texts; a single text would be a list of its letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise _wrong(name, value, "a list of texts")
    return [text(f"{name}[{number}]", one) for number, one in enumerate(value)]


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping with texts as keys."""
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "a mapping")
    for key in value:
        text(f"a key of {name}", key)
    return value


def plain_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping of texts to texts, numbers and flags."""
    for key, one in mapping(name, value).items():
        if isinstance(one, str):
            text(f"{name}[{key!r}]", one)
        elif one is not None and not isinstance(one, bool | int | float):
            raise _wrong(f"{name}[{key!r}]", one, "text, a number, or True or False")
    return dict(value)


def moment(name: str, value: Any) -> Any:
    """Text, a date or a datetime."""
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise _wrong(name, value, "text, a date or a datetime")
    return text(name, value)


def partitions(name: str, value: Any) -> list[Any]:
    """A list of partition paths, and of mappings from partition column to value."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        expected = "paths, or mappings of partition column to value, which come in a list"
        raise OptionError(f"{name} are {expected}, not {type(value).__name__} {_short(value)}")
    return [mapping(name, one) if isinstance(one, Mapping) else text(name, one) for one in value]


def _session(name: str, value: Any) -> Any:
    if not hasattr(value, "createDataFrame"):
        raise _wrong(name, value, "a SparkSession")
    return value


def _function(name: str, value: Any) -> Any:
    if not callable(value):
        raise _wrong(name, value, "a function without arguments")
    return value


def _state(name: str, value: Any) -> Any:
    if not hasattr(value, "advance"):
        raise _wrong(name, value, "the state of a table")
    return value


def _expected(name: str, value: Any) -> Any:
    if type(value).__name__ != "ExpectedState":
        raise _wrong(name, value, "what a reading gave as expected")
    return value


def _stored_function(name: str, value: Any) -> Any:
    if type(value).__name__ != "StoredFunction":
        raise _wrong(name, value, "a StoredFunction")
    return value


def _columns(name: str, value: Any) -> Any:
    if type(value).__name__ not in ("Schema", "StructType"):
        raise _wrong(name, value, "a pyarrow Schema or Spark's StructType")
    return value


def _expression(name: str, value: Any) -> Any:
    if type(value).__name__ != "Expression" or not type(value).__module__.startswith("pyarrow"):
        raise _wrong(name, value, "a pyarrow expression, such as pc.field('day') == '2026-01-01'")
    return value


def _names(name: str, value: Any) -> Any:
    if isinstance(value, str) or not hasattr(value, "__contains__"):
        raise _wrong(name, value, "a set of names")
    return value


def _any(name: str, value: Any) -> Any:
    return value


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


CHECKS: dict[str, Check] = {
    "Any": _any,
    "Storage": _any,
    "Sequence[Any] | Mapping[str, Any] | None": _any,
    "str": text,
    "str | None": _or_none(text),
    "bool": flag,
    "Callable[[], None] | None": _or_none(_function),
    "ExpectedState | None": _or_none(_expected),
    "StoredFunction": _stored_function,
    "TableState | None": _or_none(_state),
    "int": count,
    "int | None": _or_none(count),
    "Moment | None": _or_none(moment),
    "Sequence[str]": texts,
    "Sequence[str] | None": _or_none(texts),
    "Sequence[str | Mapping[str, Any]]": partitions,
    "Sequence[str | Mapping[str, Any]] | None": _or_none(partitions),
    "Mapping[str, Any] | None": _or_none(plain_mapping),
    "Mapping[str, str] | None": _or_none(plain_mapping),
    "Mapping[str, str | Mapping[str, Any]] | None": _or_none(mapping),
    "Container[str]": _names,
    "SparkSession": _session,
    "SparkSession | None": _or_none(_session),
    "pa.Schema | StructType": _columns,
    "pc.Expression | None": _or_none(_expression),
}
"""Checks by annotation, as written."""


def check(name: str, annotation: str, value: Any) -> Any:
    """The value checked against its annotation. Raises `OptionError` with the argument and the value."""
    return CHECKS[annotation](name, value)


def checked(kind: type[Kind]) -> type[Kind]:
    """Class decorator that checks the arguments of public methods by their annotations, which must be among `CHECKS`."""
    for name, member in list(vars(kind).items()):
        function = member.__func__ if isinstance(member, classmethod) else member
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            wrapped = _checking(function)
            setattr(kind, name, classmethod(wrapped) if isinstance(member, classmethod) else wrapped)
    return kind


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    given = [one for one in signature.parameters.values() if one.annotation is not inspect.Parameter.empty]
    checks = {one.name: CHECKS[one.annotation] for one in given if one.kind is not inspect.Parameter.VAR_KEYWORD}

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, one in checks.items():
            if name in bound.arguments:
                bound.arguments[name] = one(name, bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call
