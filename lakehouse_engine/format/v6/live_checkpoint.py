"""A checkpoint of live files as bytes: a Parquet file whose footer has a checksum of the whole file.

There is one row for each base file and each write to a log file. The format is this engine's own: no other program looks for it
(docs/adr/0014).
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.seal import BLANK_SEAL, SEAL_KEY, is_intact, seal
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveCheckpoint, LiveFiles, LiveGroup, WrittenFile

_VERSION = "1"
_VERSION_KEY, _ARCHIVE_KEY, _TOLD_KEY = "lakehouse.live.version", "lakehouse.live.archive", "lakehouse.live.told"
_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("instant_time", pa.string(), nullable=False),
        pa.field("base_instant", pa.string(), nullable=False),
        pa.field("is_log", pa.bool_(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("start", pa.int64()),
        pa.field("checksum", pa.string()),
    ]
)


def encode_live_files(checkpoint: LiveCheckpoint) -> bytes:
    """Bytes of a checkpoint: a Parquet file with one row per live file or write to a log file."""
    live = checkpoint.live
    rows = sorted(live.files(), key=lambda row: (row[0].partition_path, row[0].file_id, row[1].is_log, row[1].instant_time, row[1].path))
    columns: list[list[Any]] = [
        [group.partition_path for group, _ in rows],
        [group.file_id for group, _ in rows],
        [file.path.rpartition("/")[2] for _, file in rows],
        *([getattr(file, name) for _, file in rows] for name in _SCHEMA.names[3:]),
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    metadata = {SEAL_KEY: BLANK_SEAL, _VERSION_KEY: _VERSION, _ARCHIVE_KEY: str(checkpoint.archive_number)}
    if checkpoint.told_to:
        metadata[_TOLD_KEY] = checkpoint.told_to
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd", store_schema=False, write_statistics=False) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        writer.add_key_value_metadata(metadata)
    return seal(sink.getvalue())


def decode_live_files(content: bytes) -> LiveCheckpoint:
    """Decode a checkpoint. Raises `FormatError` for content that is damaged or of another version."""
    if not is_intact(content):
        raise FormatError("a checkpoint of live files is damaged: its checksum does not fit")
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            table, metadata = file.read(use_threads=False), file.metadata.metadata or {}
        told_to = metadata.get(_TOLD_KEY.encode(), b"").decode("ascii")
        version, number = metadata.get(_VERSION_KEY.encode()), int(metadata[_ARCHIVE_KEY.encode()])
        if version != _VERSION.encode() or table.schema.names != _SCHEMA.names:
            raise FormatError(f"a checkpoint of live files has version {version!r}, which is not {_VERSION}")
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise FormatError(f"a checkpoint of live files does not parse: {error}") from error
    return LiveCheckpoint(_files(table), number, told_to)


def _files(table: pa.Table) -> LiveFiles:
    groups: dict[FileGroupId, LiveGroup] = {}
    columns = (table.column(name).to_pylist() for name in _SCHEMA.names)
    for partition, file_id, name, instant, base_instant, is_log, size, start, checksum in zip(*columns, strict=True):
        group = FileGroupId(partition, file_id)
        file = WrittenFile(join_path(partition, name), instant, base_instant, is_log, size, start, checksum)
        known = groups.get(group, _NOTHING)
        groups[group] = LiveGroup(known.base, (*known.logs, file)) if is_log else LiveGroup(file, known.logs)
    return LiveFiles(groups)


_NOTHING = LiveGroup()
