"""Stored functions: `<schema>/.functions/<name>.json` in the warehouse, in a namespace separate from relations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.names import RelationName, check_identifier
from lakehouse_engine.catalog.schema_drop import FUNCTIONS
from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import MetadataError, RelationNotFoundError, SqlError, StoredFileNotFoundError
from lakehouse_engine.storage.locations import has_file


class Language(StrEnum):
    """Language of a stored function's body."""

    SQL = "sql"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Parameter:
    """`type` is Spark's DDL text, `default` an SQL expression or None."""

    name: str
    type: str
    default: str | None = None

    def __str__(self) -> str:
        return f"`{self.name}` {self.type}" + ("" if self.default is None else f" DEFAULT {self.default}")


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function. `body` is an SQL expression or query, or a Python module whose `entry_point` is called for each row.

    For an `aggregate`, `body` is an SQL expression over aggregates of the parameters, or `entry_point` is a class with
    `accumulate(*values)` and `finish()`. `deterministic` is None if not stated.
    """

    language: Language
    parameters: tuple[Parameter, ...]
    returns: str
    body: str
    aggregate: bool = False
    deterministic: bool | None = None
    entry_point: str = field(default="")

    def __post_init__(self) -> None:
        if self.language is Language.PYTHON and not self.entry_point:
            raise SqlError("a function in Python needs an entry point: the name of the function or class in its text")
        seen: set[str] = set()
        for one in self.parameters:
            if one.name.lower() in seen:
                raise SqlError(f"the parameter {one.name} is there twice; names differ by more than case")
            if "`" in one.name:
                raise SqlError(f"the parameter {one.name!r} has a backquote in its name; take it away")
            seen.add(one.name.lower())

    def to_json(self) -> bytes:
        body = {
            "language": str(self.language.value),
            "parameters": [[one.name, one.type, one.default] for one in self.parameters],
            "returns": self.returns,
            "body": self.body,
            "aggregate": self.aggregate,
            "deterministic": self.deterministic,
            "entry_point": self.entry_point,
        }
        # As in `records`: a lone surrogate becomes its JSON escape.
        return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")

    @classmethod
    def from_json(cls, data: bytes, path: str) -> StoredFunction:
        """Raises `MetadataError` naming `path` if the file is not a function."""
        try:
            body = json.loads(data)
            parameters = tuple(Parameter(str(name), str(kind), default) for name, kind, default in body["parameters"])
            said = body["deterministic"]
            return cls(
                Language(body["language"]),
                parameters,
                str(body["returns"]),
                str(body["body"]),
                bool(body["aggregate"]),
                None if said is None else bool(said),
                str(body["entry_point"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise MetadataError(f"the file is no stored function ({error}); drop the function and create it again", path=path) from error


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions of a warehouse. Nothing is cached; names are case-insensitive."""

    catalog: Catalog

    def names(self, schema: str) -> list[RelationName]:
        """Functions of a schema, sorted; empty if the schema does not exist."""
        found = self.catalog.find_schema(schema)
        if found is None:
            return []
        files = [entry.name for entry in self.catalog.storage.list(f"{found}/{FUNCTIONS}")]
        return sorted(RelationName(found, name.removesuffix(".json")) for name in files if name.endswith(".json"))

    def find(self, parts: Sequence[str]) -> tuple[RelationName, StoredFunction] | None:
        """Function for a name of two parts (or three, starting with `spark_catalog`); None if there is none, or the name cannot be one."""
        try:
            name = RelationName.of(tuple(parts))
        except SqlError:
            return None
        stored = self._stored(name)
        if stored is None:
            return None
        path = _path(stored)
        try:
            return stored, StoredFunction.from_json(self.catalog.storage.read(path), path)
        except StoredFileNotFoundError:  # dropped since it was found
            return None

    def put(self, name: RelationName, function: StoredFunction) -> RelationName:
        """Store a function, replacing one of the same name; returns its stored name. Creates the schema if it is missing."""
        check_identifier(name.name, "function")
        stored = self._stored(name) or RelationName(self.catalog.create_schema(name.schema, if_not_exists=True), name.name)
        self.catalog.storage.overwrite(_path(stored), function.to_json())
        return stored

    def drop(self, name: RelationName, *, if_exists: bool = False) -> bool:
        """Delete a function; False if it does not exist and `if_exists`. Raises `RelationNotFoundError`."""
        stored = self._stored(name)
        if stored is None and not if_exists:
            raise RelationNotFoundError(f"there is no function {name}", relation=name)
        if stored is not None:
            self.catalog.storage.delete(_path(stored))
        return stored is not None

    def _stored(self, name: RelationName) -> RelationName | None:
        if has_file(self.catalog.storage, _path(name)):
            return name
        return next((one for one in self.names(name.schema) if one.name.lower() == name.name.lower()), None)


def _path(name: RelationName) -> str:
    return f"{name.schema}/{FUNCTIONS}/{name.name}.json"
