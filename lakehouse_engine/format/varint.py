"""Numbers of variable length, as Avro, protobuf and Thrift have them: seven bits an octet, the lowest first."""

from __future__ import annotations

from lakehouse_engine.errors import FormatError


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes | memoryview, at: int, *, of: str) -> tuple[int, int]:
    """Decode a number; returns it and the position after it. Raises `FormatError`, which names what `of` says the bytes are."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise FormatError(f"{of} ends within a number")
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            return value, at


def decode_long(data: bytes | memoryview, at: int, *, of: str) -> tuple[int, int]:
    """Decode a number with a sign, as Avro writes it (zigzag); as `decode_varint` otherwise."""
    value, at = decode_varint(data, at, of=of)
    return (value >> 1) ^ -(value & 1), at
