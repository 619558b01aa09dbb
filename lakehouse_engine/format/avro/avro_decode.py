"""Decodes records from Avro's binary form into Arrow columns, without an object per row.

All records are read side by side: there is one position per record, and each field advances all of them. The branch of a union is a mask;
elements of arrays and maps are read in rounds (the first of every record, then the second, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import FormatError, MetadataError
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.format.avro.avro_schema import load_record
from lakehouse_engine.format.avro.avro_source import AvroSource, Positions, decimals, decimals_of_bytes, int32s, utf8

Read = tuple[pa.Array, Positions]
_MILLIS_END = 2**63 // 1000


class Node(Protocol):
    """Reads one value at each position."""

    def read(self, source: AvroSource, at: Positions) -> Read: ...


def decode_records(schema_text: str, source: AvroSource, starts: Positions) -> pa.Table:
    """Decode the records that begin at `starts` (ascending, one per end in `source`) into the columns of `avro_to_arrow(schema_text)`.

    Raises `FormatError` if the bytes do not decode, `MetadataError` and `UnsupportedTypeError` as `avro_to_arrow`.
    """
    schema, at = avro_to_arrow(schema_text), starts
    columns = []
    for node in record_nodes(schema_text, schema):
        column, at = node.read(source, at)
        columns.append(column)
    if bool((at != source.ends).any()):
        raise FormatError("an Avro record does not end where its length says")
    return pa.Table.from_arrays(columns, schema=schema) if columns else schema.empty_table()


def record_nodes(schema_text: str, schema: pa.Schema) -> list[Node]:
    """Readers for the fields of a record, in order; `schema` is the result of `avro_to_arrow` for the same text."""
    try:
        return _Compiler({}).fields(load_record(schema_text), "", list(schema))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MetadataError(f"an Avro schema has a type that lacks a member: {error!r}") from error


@dataclass(frozen=True, slots=True)
class _Number:
    """`int`, `long` and types stored as them; `factor` converts milliseconds to microseconds."""

    kind: pa.DataType
    factor: int = 1

    def read(self, source: AvroSource, at: Positions) -> Read:
        values, at = source.longs(at)
        if self.kind.bit_width == 32:
            return pa.array(int32s(values)).view(self.kind), at
        if self.factor != 1 and len(values) and bool(((values >= _MILLIS_END) | (values <= -_MILLIS_END)).any()):
            raise FormatError("an Avro timestamp in milliseconds has no microseconds of 64 bits")
        return pa.array(values * self.factor).view(self.kind), at


@dataclass(frozen=True, slots=True)
class _Floating:
    kind: pa.DataType

    def read(self, source: AvroSource, at: Positions) -> Read:
        octets, at = source.fixed(at, self.kind.bit_width // 8)
        return pa.Array.from_buffers(self.kind, len(octets), [None, pa.py_buffer(octets)]), at


@dataclass(frozen=True, slots=True)
class _Boolean:
    def read(self, source: AvroSource, at: Positions) -> Read:
        octets = source.read(at)
        if bool((octets > 1).any()):
            raise FormatError("an Avro boolean is neither 0 nor 1")
        return pa.array(octets.astype(np.bool_)), at + 1


@dataclass(frozen=True, slots=True)
class _Text:
    """`string`, `bytes`, and decimals stored as bytes."""

    kind: pa.DataType

    def read(self, source: AvroSource, at: Positions) -> Read:
        values, at = source.texts(at)
        if pat.is_string(self.kind):
            return utf8(values), at
        return (decimals_of_bytes(values, self.kind) if pat.is_decimal(self.kind) else values), at


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A decimal of a fixed number of bytes."""

    kind: pa.DataType
    size: int

    def read(self, source: AvroSource, at: Positions) -> Read:
        octets, at = source.fixed(at, self.size)
        return decimals(octets, self.kind), at


@dataclass(frozen=True, slots=True)
class _Enum:
    symbols: tuple[str, ...]

    def read(self, source: AvroSource, at: Positions) -> Read:
        numbers, at = source.longs(at)
        if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= len(self.symbols)):
            raise FormatError("an Avro enum has a number without a symbol")
        return pa.array(self.symbols, pa.string()).take(pa.array(numbers)), at


@dataclass(frozen=True, slots=True)
class _Null:
    kind: pa.DataType

    def read(self, source: AvroSource, at: Positions) -> Read:
        return pa.nulls(len(at), self.kind), at


@dataclass(frozen=True, slots=True)
class _Optional:
    """A union of null and one type, or of one type alone (`null` is then -1); `value` and `null` are their branch numbers."""

    member: Node
    kind: pa.DataType
    value: int
    null: int

    def read(self, source: AvroSource, at: Positions) -> Read:
        branch, at = source.longs(at)
        valid = branch == self.value
        if bool(valid.all()):
            return self.member.read(source, at)
        if bool((~valid & (branch != self.null)).any()) or self.null < 0:
            raise FormatError("an Avro union has a branch that it does not have")
        rows = np.flatnonzero(valid)
        if not len(rows):
            return pa.nulls(len(at), self.kind), at
        values, at[rows] = self.member.read(source, at[rows])
        places = np.zeros(len(at), np.int64)
        places[rows] = np.arange(len(rows))
        return values.take(pa.array(places, mask=~valid)), at


@dataclass(frozen=True, slots=True)
class _Branches:
    """A union of several records; `members` read the branches `numbers`, in the order of the fields of the struct `kind`."""

    kind: pa.DataType
    members: tuple[Node, ...]
    numbers: tuple[int, ...]
    null: int

    def read(self, source: AvroSource, at: Positions) -> Read:
        branch, at = source.longs(at)
        if not bool(np.isin(branch, (*self.numbers, *([self.null] if self.null >= 0 else []))).all()):
            raise FormatError("an Avro union has a branch that it does not have")
        children = []
        for number, member, field in zip(self.numbers, self.members, self.kind, strict=True):
            rows = np.flatnonzero(branch == number)
            if not len(rows):
                children.append(pa.nulls(len(at), field.type))
                continue
            values, at[rows] = member.read(source, at[rows])
            places = np.zeros(len(at), np.int64)
            places[rows] = np.arange(len(rows))
            children.append(values.take(pa.array(places, mask=branch != number)))
        return pa.StructArray.from_arrays(children, fields=list(self.kind), mask=pa.array(branch == self.null)), at


@dataclass(frozen=True, slots=True)
class _Record:
    kind: pa.DataType
    members: tuple[Node, ...]

    def read(self, source: AvroSource, at: Positions) -> Read:
        if not self.members:
            return pa.Array.from_buffers(self.kind, len(at), [None]), at
        children = []
        for member in self.members:
            child, at = member.read(source, at)
            children.append(child)
        return pa.StructArray.from_arrays(children, fields=list(self.kind)), at


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Arrays and maps; `members` read one element: its value, or its key and value."""

    kind: pa.DataType
    members: tuple[Node, ...]

    def read(self, source: AvroSource, at: Positions) -> Read:
        sizes = np.zeros(len(at), np.int64)
        left = np.zeros(len(at), np.int64)
        active = np.arange(len(at))
        rounds: list[tuple[npt.NDArray[np.int64], list[pa.Array]]] = []
        at = at.copy()
        while True:
            due = active[left[active] == 0]
            left[due], at[due] = self._counts(source, at[due])
            active = active[left[active] > 0]
            if not len(active):
                break
            elements, at[active] = self._element(source, at[active])
            rounds.append((active, elements))
            sizes[active] += 1
            left[active] -= 1
        return self._assembled(sizes, rounds), at

    def _counts(self, source: AvroSource, at: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
        """Element counts of the blocks that begin here. The block's size in bytes follows a negative count."""
        counts, at = source.longs(at)
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            _, at[sized] = source.longs(at[sized])
            counts[sized] = -counts[sized]
        # An element takes at least one byte, so a count that does not fit is found before elements are read.
        if len(counts) and (int(counts.min()) < 0 or bool((counts > source.left(at)).any())):
            raise FormatError("an Avro array has more elements than bytes are left in its record")
        return counts, at

    def _element(self, source: AvroSource, at: Positions) -> tuple[list[pa.Array], Positions]:
        parts = []
        for member in self.members:
            part, at = member.read(source, at)
            parts.append(part)
        return parts, at

    def _assembled(self, sizes: npt.NDArray[np.int64], rounds: Sequence[tuple[npt.NDArray[np.int64], list[pa.Array]]]) -> pa.Array:
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        if not rounds:
            parts = [pa.array([], kind) for kind in self._child_types()]
        else:
            # Each round holds one element per record; a stable sort by record groups the elements of each record.
            order = pa.array(np.argsort(np.concatenate([rows for rows, _ in rounds]), kind="stable"))
            parts = [pa.concat_arrays([elements[number] for _, elements in rounds]).take(order) for number in range(len(self.members))]
        if pat.is_map(self.kind):
            return pa.MapArray.from_arrays(offsets, parts[0], parts[1], type=self.kind)
        return pa.ListArray.from_arrays(offsets, parts[0], type=self.kind)

    def _child_types(self) -> list[pa.DataType]:
        return [self.kind.key_type, self.kind.item_type] if pat.is_map(self.kind) else [self.kind.value_type]


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles schema JSON into nodes; `named` remembers types that are spelled out once and referred to by name."""

    named: dict[str, Any]

    def fields(self, record: dict[str, Any], namespace: str, kinds: Sequence[pa.Field]) -> list[Node]:
        inner = self._remember(record, namespace)
        return [self.node(member["type"], inner, field.type) for member, field in zip(record["fields"], kinds, strict=True)]

    def node(self, avro: Any, namespace: str, kind: pa.DataType) -> Node:
        if isinstance(avro, list):
            return self._union(avro, namespace, kind)
        if isinstance(avro, str):
            return self._named(avro, namespace, kind)
        name, logical = avro["type"], str(avro.get("logicalType"))
        if not isinstance(name, str):
            return self.node(name, namespace, kind)
        if name == "record":
            return _Record(kind, tuple(self.fields(avro, namespace, list(kind))))
        if name == "array":
            return _Repeated(kind, (self.node(avro["items"], namespace, kind.value_type),))
        if name == "map":
            return _Repeated(kind, (_Text(pa.string()), self.node(avro["values"], namespace, kind.item_type)))
        self._remember(avro, namespace)
        if name == "enum":
            return _Enum(tuple(avro["symbols"]))
        if name == "fixed":
            if int(avro["size"]) < 0:
                raise MetadataError(f"an Avro fixed has the size {avro['size']}")
            return _Fixed(kind, int(avro["size"]))
        return _Number(kind, 1000) if logical.endswith("timestamp-millis") else self._named(name, namespace, kind)

    def _union(self, members: list[Any], namespace: str, kind: pa.DataType) -> Node:
        values = [number for number, member in enumerate(members) if member != "null"]
        if not values:
            return _Optional(_Null(kind), kind, members.index("null"), -1)
        null = members.index("null") if "null" in members else -1
        if len(values) > 1 and pat.is_struct(kind):
            nodes = (self.node(members[number], namespace, field.type) for number, field in zip(values, kind, strict=True))
            return _Branches(kind, tuple(nodes), tuple(values), null)
        return _Optional(self.node(members[values[0]], namespace, kind), kind, values[0], null)

    def _named(self, name: str, namespace: str, kind: pa.DataType) -> Node:
        if name in ("int", "long"):
            return _Number(kind)
        if name in ("float", "double"):
            return _Floating(kind)
        if name in ("string", "bytes"):
            return _Text(kind)
        if name == "boolean":
            return _Boolean()
        if name == "null":
            return _Null(kind)
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        avro, inner = self.named.get(full) or self.named[name]
        return self.node(avro, inner, kind)

    def _remember(self, avro: dict[str, Any], namespace: str) -> str:
        """Keep a named type; returns the namespace inside it."""
        name = avro.get("name")
        if not isinstance(name, str):
            return namespace
        inner = name.rpartition(".")[0] if "." in name else (avro.get("namespace", namespace) or "")
        self.named.setdefault(name if "." in name or not inner else f"{inner}.{name}", (avro, inner))
        return inner
