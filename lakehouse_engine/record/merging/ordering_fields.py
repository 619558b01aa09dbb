"""Reads the ordering fields from tables: top-level columns, and struct members by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError

_BINLOG = r"^(?P<file>[+-]?[0-9]+)\.(?P<position>[+-]?[0-9]+)(?:\.|$)"


@dataclass(frozen=True, slots=True)
class OrderingFields:
    """`paths` are the names from the column to the value (`("n", "t")` for `n.t`), in the table's spelling.

    `binlog`: the one field holds MySQL binlog positions as text, `<file>.<position>`, which compare as two numbers. `required`: every row
    of a batch must have a value.
    """

    paths: tuple[tuple[str, ...], ...] = ()
    binlog: bool = False
    required: bool = False

    @classmethod
    def of(cls, names: Sequence[str], schema: pa.Schema, *, binlog: bool = False, required: bool = False) -> OrderingFields:
        """`schema` has the table's user columns. A field that it lacks is equal in all rows, as in Hudi.

        Names ignore case; a dot leads into a struct, like Hudi's `HoodieAvroUtils.getNestedFieldVal`.
        """
        paths = (_resolved(name, schema) for name in names)
        return cls(tuple(path for path in paths if path is not None), binlog, required)

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def roots(self) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys(path[0] for path in self.paths))

    def types(self, schema: pa.Schema) -> list[pa.DataType]:
        """Types of the stored values."""
        return [_type(schema, path) for path in self.paths]

    def stored(self, table: pa.Table) -> list[pa.Array]:
        """Stored values of every row, one array per field."""
        return [_flat(_column(table, path)) for path in self.paths]

    def comparable(self, stored: Sequence[pa.Array]) -> list[pa.Array]:
        """Comparable values of rows. Raises `SchemaIncompatibleError` for text that is not a binlog position."""
        return _places(stored[0], ".".join(self.paths[0])) if self.binlog and stored else list(stored)

    def values(self, table: pa.Table) -> list[pa.Array]:
        return self.comparable(self.stored(table))

    def offered(self, table: pa.Table) -> list[pa.Array]:
        """Values of a batch. Raises `SchemaIncompatibleError` if a required one is missing."""
        stored = self.stored(table)
        if self.required and stored and stored[0].null_count:
            name = ".".join(self.paths[0])
            message = f"{stored[0].null_count} rows of the batch have no value in {name!r}, which orders them"
            raise SchemaIncompatibleError(message, column=name)
        return self.comparable(stored)


NO_ORDERING = OrderingFields()


def _resolved(name: str, schema: pa.Schema) -> tuple[str, ...] | None:
    whole = _match(name, schema.names)
    if whole is not None:
        return (whole,)
    path: list[str] = []
    known, kind = schema.names, None
    for part in name.split("."):
        if kind is not None:
            if not pat.is_struct(kind):
                return None
            known = [kind.field(number).name for number in range(kind.num_fields)]
        found = _match(part, known)
        if found is None:
            return None
        path.append(found)
        kind = _type(schema, path)
    return tuple(path)


def _match(name: str, names: Sequence[str]) -> str | None:
    if name in names:
        return name
    return next((known for known in names if known.lower() == name.lower()), None)


def _type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def _column(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _flat(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _places(texts: pa.Array, name: str) -> list[pa.Array]:
    """File and position as numbers (Hudi `MySqlDebeziumAvroPayload.isCurrentSeqLatest`)."""
    if not (pat.is_string(texts.type) or pat.is_large_string(texts.type)):
        raise SchemaIncompatibleError(f"{name!r} is {texts.type} and not text of the form <file>.<position>", column=name)
    found = pc.extract_regex(texts, _BINLOG)
    try:
        places = [pc.struct_field(found, part).cast(pa.int64()) for part in ("file", "position")]
    except pa.ArrowInvalid as error:
        raise SchemaIncompatibleError(f"a value of {name!r} has numbers beyond 64 bits: {error}", column=name) from error
    if places[0].null_count > texts.null_count:
        wrong = texts.filter(pc.and_(texts.is_valid(), places[0].is_null()))
        raise SchemaIncompatibleError(f"{wrong[0].as_py()!r} in {name!r} is not of the form <file>.<position>", column=name)
    return places
