"""The part of the protobuf encoding that HFiles use: numbers and byte strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakehouse_engine.errors import FormatError

_NUMBER, _BYTES = 0, 2
"""Wire types."""

Field = tuple[int, int | bytes]


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Decode a number; returns it and the position after it. Raises `FormatError`."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise FormatError("a protobuf number has no end")
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            return value, at


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
    size, at = decode_varint(data, at)
    if at + size > len(data):
        raise FormatError("a protobuf message ends within its bytes")
    return data[at : at + size]


def decode_message(data: memoryview) -> Iterator[Field]:
    """Fields as (number, value), in stored order. Raises `FormatError` for other wire types."""
    at = 0
    while at < len(data):
        tag, at = decode_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _NUMBER:
            value, at = decode_varint(data, at)
            yield number, value
        elif wire == _BYTES:
            content = decode_delimited(data, at)
            at = decode_varint(data, at)[1] + len(content)
            yield number, bytes(content)
        else:
            raise FormatError(f"a protobuf field of an HFile has the wire type {wire}")
