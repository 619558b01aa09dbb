"""Arguments of procedures, and the check of a call's values.

Values are literals of the statement, never expressions, and stay values: none becomes text of another statement or a path.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import MissingOptionError, OptionError, UnsupportedSqlError
from lakehouse_engine.options import check_known
from lakehouse_engine.sql.grammar.statements import Call, Value

_VERSIONS = {"six": 6, "6": 6, "eight": 8, "8": 8, "nine": 9, "9": 9}
"""Hudi's words for versions, and their numbers."""
_INSTANT = re.compile(r"[0-9]{14}([0-9]{3}){0,2}")


class Kind(StrEnum):
    """Kind of a value. Counts are positive integers; an instant has 14, 17 or 20 digits, as a string or number."""

    TEXT = "a string"
    COUNT = "a whole number above 0"
    FLAG = "true or false"
    INSTANT = "an instant (yyyyMMddHHmmssSSS)"
    SAVEPOINT = "the name or the instant of a savepoint"
    OPTIONS = "options ('key=value,key=value')"
    VERSION = "a table version (SIX, EIGHT, NINE, or its number)"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. A call that omits it, or gives NULL or an empty string, gets `default`, like in Hudi."""

    name: str
    kind: Kind = Kind.TEXT
    default: Any = None
    required: bool = False


TABLE = Argument("table", required=True)


@dataclass(frozen=True, slots=True)
class Refused:
    """An argument of Hudi's that this engine does not use; `because` says what to do instead."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class Signature:
    """A procedure's name and arguments, in positional order."""

    name: str
    arguments: tuple[Argument, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(argument.name for argument in self.arguments)

    def values_of(self, call: Call) -> dict[str, Any]:
        """Value of every argument, by name.

        Raises `UnsupportedSqlError` for an unknown or repeated argument, `MissingOptionError` for a missing one, `OptionError` for a value
        of the wrong kind, `UnknownOptionError` for unknown options.
        """
        given: dict[str, Value] = {}
        for position, (name, value) in enumerate(call.arguments):
            argument = self._named(name) if name is not None else self._at(position)
            if argument.name in given:
                raise UnsupportedSqlError(f"{self.name} is given {argument.name} twice")
            given[argument.name] = value
        return {argument.name: self._value(argument, given.get(argument.name)) for argument in self.arguments}

    def _named(self, name: str) -> Argument:
        found = next((argument for argument in self.arguments if argument.name.lower() == name.lower()), None)
        if found is not None:
            return found
        refused = next((one for one in self.refused if one.name.lower() == name.lower()), None)
        if refused is not None:
            raise UnsupportedSqlError(f"{self.name} does not take {name} here: {refused.because}")
        raise UnsupportedSqlError(f"{self.name} has no argument {name}{nearest(name, self.names)}")

    def _at(self, position: int) -> Argument:
        if position >= len(self.arguments):
            raise UnsupportedSqlError(f"{self.name} takes at most {len(self.arguments)} arguments ({', '.join(self.names)})")
        return self.arguments[position]

    def _value(self, argument: Argument, value: Value) -> Any:
        if value is None or value == "":
            if argument.required:
                raise MissingOptionError(f"CALL {self.name} needs {argument.name} => {argument.kind}")
            return argument.default
        try:
            return _READERS[argument.kind](value)
        except OptionError:
            raise
        except ValueError as error:
            shown = value if isinstance(value, Decimal) else repr(value)
            raise OptionError(f"CALL {self.name}: {argument.name} => {shown} is not {argument.kind}") from error


def nearest(name: str, known: Sequence[str]) -> str:
    """End of a message about an unknown name: the nearest known one, or all of them."""
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _count(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError
    return value


def _flag(value: Value) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _instant(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not _INSTANT.fullmatch(str(value)):
        raise ValueError
    return str(value)


def _savepoint(value: Value) -> str:
    return _text(value) if isinstance(value, str) else _instant(value)


def _version(value: Value) -> int:
    found = _VERSIONS.get(str(value).strip().lower())
    if found is None:
        raise ValueError
    return found


def _options(value: Value) -> Mapping[str, str]:
    pairs = [pair.partition("=") for pair in _text(value).split(",")]
    if not all(separator and key.strip() for key, separator, _ in pairs):
        raise ValueError
    options = {key.strip(): text.strip() for key, _, text in pairs}
    check_known(options)
    return options


_READERS: dict[Kind, Callable[[Value], Any]] = {
    Kind.TEXT: _text,
    Kind.COUNT: _count,
    Kind.FLAG: _flag,
    Kind.INSTANT: _instant,
    Kind.SAVEPOINT: _savepoint,
    Kind.OPTIONS: _options,
    Kind.VERSION: _version,
}
