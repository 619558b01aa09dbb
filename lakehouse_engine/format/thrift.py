"""Thrift's compact protocol, as far as footers of Parquet files need it: reads values without a schema and writes them back byte for byte
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).

Arrow's Parquet writer cannot assemble a file from parts of others, so code that copies column chunks writes the footer itself. Sets and
maps, which Parquet does not use, are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.varint import encode_varint

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_INTEGERS = frozenset({I16, I32, I64})
_DEEPEST = 64


@dataclass(slots=True)
class ThriftList:
    """Values of one kind."""

    kind: int
    values: list[Any]


@dataclass(slots=True)
class ThriftStruct:
    """Fields by number, each with its kind. Integers are int, binaries bytes, doubles eight bytes, booleans bool."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def get(self, number: int) -> Any:
        """The value of a field; None if absent."""
        found = self.fields.get(number)
        return None if found is None else found[1]

    def set(self, number: int, kind: int, value: Any) -> None:
        """Set a field; None removes it."""
        if value is None:
            self.fields.pop(number, None)
        else:
            self.fields[number] = kind, value

    def copy(self) -> ThriftStruct:
        """A shallow copy."""
        return ThriftStruct(dict(self.fields))


def read_struct(data: bytes) -> ThriftStruct:
    """Parse the struct that `data` consists of. Raises `FormatError` if it is not a struct, is cut short, or has extra bytes."""
    source = _Source(data)
    try:
        found = source.struct(0)
    except IndexError as error:
        raise FormatError("a Thrift value ends too early") from error
    if source.at != len(data):
        raise FormatError(f"{len(data) - source.at} bytes come behind a Thrift value")
    return found


def write_struct(value: ThriftStruct) -> bytes:
    """Encode a struct, its fields in ascending order."""
    parts: list[bytes] = []
    _write_struct(value, parts)
    return b"".join(parts)


@dataclass(slots=True)
class _Source:
    data: bytes
    at: int = 0

    def struct(self, depth: int) -> ThriftStruct:
        fields: dict[int, tuple[int, Any]] = {}
        number = 0
        while True:
            head = self._byte()
            if not head:
                return ThriftStruct(fields)
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else _signed(self._varint())
            fields[number] = (TRUE, kind == TRUE) if kind in (TRUE, FALSE) else (kind, self._value(kind, depth))

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return _signed(self._varint())
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (STRUCT, LIST):
            if depth == _DEEPEST:
                raise FormatError("Thrift values are nested too deeply")
            return self.struct(depth + 1) if kind == STRUCT else self._list(depth + 1)
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        raise FormatError(f"a Thrift value is of the kind {kind}, which Parquet does not have")

    def _list(self, depth: int) -> ThriftList:
        head = self._byte()
        kind, count = head & 0x0F, head >> 4
        if count == 15:
            count = self._varint()
        if count > len(self.data) - self.at:
            raise FormatError("a Thrift list is longer than its file")
        if kind in (TRUE, FALSE):
            return ThriftList(TRUE, [self._byte() == TRUE for _ in range(count)])
        return ThriftList(kind, [self._value(kind, depth) for _ in range(count)])

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            octet = self._byte()
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise FormatError("a Thrift number has more than 64 bits")

    def _take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise FormatError("a Thrift value ends too early")
        self.at += count
        return found


def _write_struct(value: ThriftStruct, parts: list[bytes]) -> None:
    last = 0
    for number in sorted(value.fields):
        kind, content = value.fields[number]
        told = (TRUE if content else FALSE) if kind == TRUE else kind
        step = number - last
        parts.append(bytes((step << 4 | told,)) if 0 < step < 16 else bytes((told,)) + encode_varint(_zigzag(number)))
        if kind != TRUE:
            _write_value(kind, content, parts)
        last = number
    parts.append(b"\x00")


def _write_value(kind: int, value: Any, parts: list[bytes]) -> None:
    if kind in _INTEGERS:
        parts.append(encode_varint(_zigzag(value)))
    elif kind == BINARY:
        parts += (encode_varint(len(value)), value)
    elif kind == STRUCT:
        _write_struct(value, parts)
    elif kind == LIST:
        _write_list(value, parts)
    else:
        parts.append(bytes((value,)) if kind == BYTE else value)


def _write_list(value: ThriftList, parts: list[bytes]) -> None:
    count = len(value.values)
    parts.append(bytes((count << 4 | value.kind,)) if count < 15 else bytes((0xF0 | value.kind,)) + encode_varint(count))
    for one in value.values:
        if value.kind == TRUE:
            parts.append(bytes((TRUE if one else FALSE,)))
        else:
            _write_value(value.kind, one, parts)


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 63)
