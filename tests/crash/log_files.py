"""Log files and the archived timeline, from their bytes alone (hudi-format 5 and 8). Shares nothing with the engine."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"#HUDI#"
COMMAND, DELETE, AVRO, PARQUET = 0, 1, 3, 5
INSTANT_TIME, TARGET, SCHEMA, COMPACTED_TIMES = 0, 1, 2, 4

Row = dict[str, Any]

_WRAPPED = {
    "Boolean": "boolean",
    "Int": "int",
    "Long": "long",
    "Float": "float",
    "Double": "double",
    "Bytes": "bytes",
    "String": "string",
    "Date": "int",
    "Decimal": "bytes",
    "TimeMicros": "long",
    "TimestampMicros": "long",
}
_DELETES = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": ["null", "string"]},
                            {"name": "partitionPath", "type": ["null", "string"]},
                            {
                                "name": "orderingVal",
                                "type": [
                                    "null",
                                    *(
                                        {"type": "record", "name": f"{name}Wrapper", "fields": [{"name": "value", "type": kind}]}
                                        for name, kind in _WRAPPED.items()
                                    ),
                                ],
                            },
                        ],
                    },
                },
            }
        ],
    }
)


class TornLogError(ValueError):
    """A block is not whole."""


@dataclass(frozen=True)
class Block:
    type: int
    header: dict[int, str]
    content: bytes

    @property
    def instant(self) -> str:
        return self.header[INSTANT_TIME]

    @property
    def target(self) -> str:
        return self.header[TARGET]

    @property
    def compacted(self) -> set[str]:
        """Instants whose blocks this one stands for."""
        return set(filter(None, self.header.get(COMPACTED_TIMES, "").split(",")))

    def rows(self) -> list[Row]:
        if self.type == PARQUET:
            return pq.ParquetFile(pa.BufferReader(self.content)).read(use_threads=False).to_pylist()
        return list(self._avro_records())

    def deleted(self) -> list[str]:
        version, size = struct.unpack_from(">ii", self.content)
        if version != 3 or len(self.content) != 8 + size:
            raise TornLogError(f"a delete block of version {version} with {size} of {len(self.content)} bytes")
        return [record["recordKey"] for record in fastavro.schemaless_reader(io.BytesIO(self.content[8:]), _DELETES)["deleteRecordList"]]

    def _avro_records(self) -> Iterator[Row]:
        version, count = struct.unpack_from(">ii", self.content)
        if version != 3:
            raise TornLogError(f"an Avro block of version {version}")
        at, schema = 8, _parsed(self.header[SCHEMA])
        for _ in range(count):
            (size,) = struct.unpack_from(">i", self.content, at)
            yield fastavro.schemaless_reader(io.BytesIO(self.content[at + 4 : at + 4 + size]), schema)
            at += 4 + size
        if at != len(self.content):
            raise TornLogError(f"{len(self.content) - at} bytes behind the records of a block")


@lru_cache(64)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def blocks(data: bytes) -> list[Block]:
    """Every block; raises `TornLogError` where one is not whole."""
    found, at = [], 0
    while at < len(data):
        block, at = _block(data, at)
        found.append(block)
    return found


def whole_blocks(data: bytes) -> list[Block]:
    """The blocks up to the first that is not whole."""
    found, at = [], 0
    while at < len(data):
        try:
            block, at = _block(data, at)
        except TornLogError:
            break
        found.append(block)
    return found


def _block(data: bytes, at: int) -> tuple[Block, int]:
    if data[at : at + 6] != MAGIC or len(data) < at + 22:
        raise TornLogError(f"no block at {at}")
    length, version, kind = struct.unpack_from(">qii", data, at + 6)
    end = at + 14 + length
    if not 0 < length <= len(data) - at - 14 or version != 1:
        raise TornLogError(f"a block of {length} bytes and version {version} at {at}")
    header, place = _map(data, at + 22)
    (size,) = struct.unpack_from(">q", data, place)
    content = data[place + 8 : place + 8 + size]
    _, place = _map(data, place + 8 + size)
    (trailer,) = struct.unpack_from(">q", data, place)
    if place + 8 != end or trailer != length + 6:
        raise TornLogError(f"the block at {at} does not end where it says")
    return Block(kind, header, content), end


def _map(data: bytes, at: int) -> tuple[dict[int, str], int]:
    (count,) = struct.unpack_from(">i", data, at)
    found, at = {}, at + 4
    for _ in range(count):
        key, size = struct.unpack_from(">ii", data, at)
        found[key] = data[at + 8 : at + 8 + size].decode()
        at += 8 + size
    return found, at
