"""The last 4,096 bytes of an HFile, and its file info (hudi-format 9.3; Hudi `HFileTrailer`, `HFileInfo`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_engine.errors import FormatError, UnsupportedTableError
from lakehouse_engine.format.hfile.blocks import Compression
from lakehouse_engine.format.hfile.protobuf import decode_delimited, decode_message, delimited, encode_message

TRAILER_SIZE = 4096
_MAGIC = b'TRABLK"$'
_VERSION = b"\x03\x00\x00\x03"
"""Minor version 3 in one byte, major version 3 in three."""
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
"""The only comparator class that Hudi 0.15 finds."""
_INFO_MAGIC = b"PBUF"

KEY_VALUE_VERSION = b"KEY_VALUE_VERSION"
MAX_MEMSTORE_TS = b"MAX_MEMSTORE_TS_KEY"
AVERAGE_KEY = b"hfile.AVG_KEY_LEN"
AVERAGE_VALUE = b"hfile.AVG_VALUE_LEN"
LAST_KEY = b"hfile.LASTKEY"


@dataclass(frozen=True, slots=True)
class Trailer:
    """Where the parts of an HFile are. Offsets and sizes are in bytes; index counts are entries of the root blocks."""

    info_offset: int
    load_on_open: int
    data_index_count: int
    meta_index_count: int
    entries: int
    compression: Compression
    index_levels: int = 1
    index_size: int = 0
    content_size: int = 0
    last_data_block: int = 0

    def render(self) -> bytes:
        fields: dict[int, int | bytes] = {
            1: self.info_offset,
            2: self.load_on_open,
            3: self.index_size,
            4: self.content_size,
            5: self.data_index_count,
            6: self.meta_index_count,
            7: self.entries,
            8: self.index_levels,
            9: 0,
            10: self.last_data_block,
            11: _COMPARATOR,
            12: int(self.compression),
        }
        head = _MAGIC + delimited(encode_message(fields))
        return head.ljust(TRAILER_SIZE - len(_VERSION), b"\0") + _VERSION


def parse_trailer(data: memoryview) -> Trailer:
    """Parse the trailer at the end of `data`. Raises `FormatError`, and `UnsupportedTableError` for another version or codec."""
    if len(data) < TRAILER_SIZE or bytes(data[-TRAILER_SIZE:][: len(_MAGIC)]) != _MAGIC:
        raise FormatError(f"{len(data)} bytes do not end with the trailer of an HFile: the file is cut short, or none")
    tail = data[-TRAILER_SIZE:]
    if bytes(tail[-len(_VERSION) :])[1:] != _VERSION[1:]:
        raise UnsupportedTableError(f"an HFile has the version {bytes(tail[-len(_VERSION) :]).hex()}; only major version 3 is read")
    fields = dict(decode_message(decode_delimited(tail, len(_MAGIC))))

    def number(field: int, absent: int = 0) -> int:
        value = fields.get(field, absent)
        if not isinstance(value, int):
            raise FormatError(f"field {field} of an HFile's trailer is no number")
        return value

    return Trailer(
        info_offset=number(1),
        load_on_open=number(2),
        data_index_count=number(5),
        meta_index_count=number(6),
        entries=number(7),
        compression=Compression.of(number(12, Compression.NONE)),
        index_levels=number(8, 1),
        index_size=number(3),
        content_size=number(4),
        last_data_block=number(10),
    )


def render_info(info: Mapping[bytes, bytes]) -> bytes:
    """The content of the file info block: entries sorted by key."""
    entries = (delimited(encode_message({1: key, 2: info[key]})) for key in sorted(info))
    return _INFO_MAGIC + delimited(b"".join(b"\x0a" + entry for entry in entries))


def parse_info(content: memoryview) -> dict[bytes, bytes]:
    """Entries of the file info block. Raises `FormatError`."""
    if bytes(content[: len(_INFO_MAGIC)]) != _INFO_MAGIC:
        raise FormatError("the file info of an HFile is no protobuf")
    found: dict[bytes, bytes] = {}
    for number, entry in decode_message(decode_delimited(content, len(_INFO_MAGIC))):
        if number == 1 and isinstance(entry, bytes):
            pair = dict(decode_message(memoryview(entry)))
            key, value = pair.get(1, b""), pair.get(2, b"")
            if isinstance(key, bytes) and isinstance(value, bytes):
                found[key] = value
    return found


def standard_info(entries: int, key_bytes: int, value_bytes: int, last_key: bytes | None) -> dict[bytes, bytes]:
    """File info that Hudi's readers need, with averages even if there are no entries. Sums are of stored keys and of values, in bytes."""
    count = max(entries, 1)
    info = {
        KEY_VALUE_VERSION: struct.pack(">i", 1),
        MAX_MEMSTORE_TS: struct.pack(">q", 0),
        AVERAGE_KEY: struct.pack(">i", key_bytes // count),
        AVERAGE_VALUE: struct.pack(">i", value_bytes // count),
    }
    return info if last_key is None else {**info, LAST_KEY: last_key}
