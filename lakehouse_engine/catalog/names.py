"""Names of schemas, tables and views, each of which is also a directory or file name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import OptionError, SqlError, TableExistsError

CATALOG_PREFIX = "spark_catalog"
_TAKEN_CATALOGS = (CATALOG_PREFIX, "system", "none")
"""Names with another meaning in front of a schema's."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_MAX_BYTES = 200
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.]+?))\s*(\.|$)")


@dataclass(frozen=True, slots=True, order=True)
class RelationName:
    """Name of a table or stored view, as stored or as asked for. As text: `schema.name`, with backquotes if needed."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{_quoted(self.schema)}.{_quoted(self.name)}"

    @property
    def path(self) -> str:
        """The table's directory below the warehouse."""
        return f"{self.schema}/{self.name}"

    @classmethod
    def of(cls, parts: tuple[str, ...]) -> RelationName:
        """From two parts, or three starting with `spark_catalog`. Raises `SqlError` otherwise, or if a part is not an identifier."""
        inner = parts[1:] if len(parts) == 3 and parts[0].lower() == CATALOG_PREFIX else parts
        if len(inner) != 2:
            raise SqlError(f"{'.'.join(parts)!r} is not a relation of the warehouse; write schema.name")
        return cls(check_identifier(inner[0], "schema"), check_identifier(inner[1], "relation"))

    @classmethod
    def parse(cls, text: str) -> RelationName:
        """From `schema.name`; parts with dots are in backquotes. Raises `SqlError`."""
        return cls.of(split_name(text))


def split_name(text: str) -> tuple[str, ...]:
    """Parts of a dotted name without backquotes. Raises `SqlError` if it does not parse."""
    parts, position = [], 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise SqlError(f"{text!r} is no relation name; write schema.name, with backquotes around parts that hold dots")
        quoted, bare, separator = match.groups()
        parts.append(quoted.replace("``", "`") if quoted is not None else bare)
        position = match.end()
        if separator == "":
            return tuple(parts)


def check_identifier(name: str, what: str) -> str:
    """Return `name` if it can be a directory or file name. Raises `SqlError` naming the character that is not allowed.

    `what` is the noun of the message ("schema", "relation").
    """
    if not name or name.startswith("."):
        raise SqlError(f"{name!r} cannot be the name of a {what}: it is empty or starts with a dot")
    wrong = next((character for character in name if character in '/\\:*?"<>|' or not character.isprintable()), None)
    if wrong is not None:
        raise SqlError(f"{name!r} cannot be the name of a {what}: it holds {wrong!r}, and names are directories of the warehouse")
    if len(name.encode()) > _MAX_BYTES:
        raise SqlError(f"{name[:40]!r}... cannot be the name of a {what}: it is longer than {_MAX_BYTES} bytes")
    return name


def check_name(name: RelationName) -> None:
    """Raise `SqlError` for a name that no directory or file can have."""
    check_identifier(name.schema, "schema")
    check_identifier(name.name, "relation")


def taken_meanwhile(name: RelationName) -> TableExistsError:
    """Error for a name that another process took after it was seen to be free."""
    return TableExistsError(f"{name} was created by another process meanwhile, and stays as that made it: run this again", table=name)


def _quoted(part: str) -> str:
    return part if re.fullmatch(r"\w+", part) else "`" + part.replace("`", "``") + "`"


def check_catalog_name(name: Any) -> str:
    """The name in lower case. Raises `OptionError` unless it is a plain word without another meaning."""
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise OptionError(f"a catalog's name is a plain word, not {name!r}")
    if name.lower() in _TAKEN_CATALOGS:
        raise OptionError(f"a catalog cannot be called {name!r}, which means something else: choose another name")
    return name.lower()
