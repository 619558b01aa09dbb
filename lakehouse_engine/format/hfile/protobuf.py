"""The part of the protobuf encoding that HFiles use: numbers and byte strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.varint import decode_varint, encode_varint

_NUMBER, _BYTES = 0, 2
"""Wire types."""

_MESSAGE = "a protobuf message"

Field = tuple[int, int | bytes]


def encode_message(fields: Mapping[int, int | bytes]) -> bytes:
    """Encode fields, given by number, in ascending order of numbers."""
    return b"".join(_encoded(number, fields[number]) for number in sorted(fields))


def _encoded(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return encode_varint(number << 3 | _NUMBER) + encode_varint(value)
    return encode_varint(number << 3 | _BYTES) + delimited(value)


def delimited(message: bytes) -> bytes:
    """A message with its length before it."""
    return encode_varint(len(message)) + message


def decode_delimited(data: memoryview, at: int) -> memoryview:
    """The message whose length is at `at`. Raises `FormatError`."""
    size, at = decode_varint(data, at, of=_MESSAGE)
    if at + size > len(data):
        raise FormatError("a protobuf message ends within its bytes")
    return data[at : at + size]


def decode_message(data: memoryview) -> Iterator[Field]:
    """Fields as (number, value), in stored order. Raises `FormatError` for other wire types."""
    at = 0
    while at < len(data):
        tag, at = decode_varint(data, at, of=_MESSAGE)
        number, wire = tag >> 3, tag & 7
        if wire == _NUMBER:
            value, at = decode_varint(data, at, of=_MESSAGE)
            yield number, value
        elif wire == _BYTES:
            content = decode_delimited(data, at)
            at = decode_varint(data, at, of=_MESSAGE)[1] + len(content)
            yield number, bytes(content)
        else:
            raise FormatError(f"a protobuf field of an HFile has the wire type {wire}")
