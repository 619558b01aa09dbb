"""Writes the base file that a file group of a metadata table becomes, in bounded memory."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.errors import CompactionError
from lakehouse_engine.format.file_names import MarkerType, marker_path, write_token
from lakehouse_engine.format.hfile.writer import HFileWriter
from lakehouse_engine.format.metadata_table.schema import SCHEMA_INFO
from lakehouse_engine.metadata_table.compaction import compact_into, record_text
from lakehouse_engine.metadata_table.groups import LayerSource, Validity, sources_of
from lakehouse_engine.metadata_table.partitions import merging_of
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.tasks.attempt import FileAttempt

_EXTENSION = ".hfile"
_NEW_GROUP = "null"
_MOST_BYTES = 2**31 - 1
"""Hudi's readers have offsets of 32 bits in an HFile."""
_LEAST_KEY, _GREATEST_KEY = b"minRecordKey", b"maxRecordKey"


@dataclass(frozen=True, slots=True)
class GroupTask:
    """A slice to merge at an instant. `number` is the task's; `schema` is for a group without any record."""

    validity: Validity
    instant_time: str
    number: int
    piece: FileSlice
    schema: str


def compact_group(task: GroupTask) -> HoodieWriteStat:
    """Write the base file of a task; returns its stat, filled as by Hudi's `HoodieCompactor`. An empty group gets an empty file.

    Raises as `sources_of` and `compact_into`, and `CompactionError` for a file that Hudi could not read; what it wrote is then named by its
    marker.
    """
    began = time.monotonic()
    piece, storage = task.piece, task.validity.metadata.storage
    sources = sources_of(piece, task.validity)
    scanned = time.monotonic()
    token = write_token(task.number, 0, secrets.randbelow(1_000_000))
    file = BaseFile(piece.partition_path, piece.file_id, token, task.instant_time, _EXTENSION)
    size, rows = _write(storage, file, sources, record_text(sources, task.schema))
    return _stat(piece, file, sources, size, rows, scan=scanned - began, write=time.monotonic() - scanned)


def _write(storage: Storage, file: BaseFile, sources: Sequence[LayerSource], schema: str) -> tuple[int, int]:
    """Bytes and entries of the file that the merged sources become; durable on return."""
    marker = marker_path(file.instant_time, file.path, MarkerType.CREATE)
    attempt = FileAttempt(storage, file.instant_time, file.path, MarkerType.CREATE, lambda: storage.create(marker, b""))
    attempt.begin()
    try:
        size, rows = _merged_into(storage, file, sources, schema)
        if size > _MOST_BYTES:
            raise CompactionError(
                f"the file group {file.file_id} of the metadata table would get a file of {size} bytes, of which Hudi reads {_MOST_BYTES};"
                f" build {file.partition_path} again with more file groups (`lakehouse metadata rebuild`)",
                path=file.path,
                table=storage.root,
            )
    except BaseException:
        attempt.give_up()
        raise
    storage.sync(file.path)
    attempt.end()
    return size, rows


def _merged_into(storage: Storage, file: BaseFile, sources: Sequence[LayerSource], schema: str) -> tuple[int, int]:
    with as_storage_errors("write", file.path, storage.root), storage.open_output(file.path) as sink:
        writer = HFileWriter(sink.write)
        compact_into(writer, sources, merging_of(file.partition_path), schema)
        bounds = {_LEAST_KEY: writer.first_key, _GREATEST_KEY: writer.last_key}
        writer.close({SCHEMA_INFO: schema.encode(), **{name: key for name, key in bounds.items() if key is not None}})
        return sink.tell(), writer.entries


def _stat(
    piece: FileSlice, file: BaseFile, sources: Sequence[LayerSource], size: int, rows: int, *, scan: float, write: float
) -> HoodieWriteStat:
    created = piece.base_file is None
    logged = sum(len(source.deleted) if source.reader is None else len(source.reader) for source in sources[1:])
    scan_ms, write_ms = int(scan * 1000), int(write * 1000)
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        prev_commit=_NEW_GROUP if created else piece.base_instant,
        num_writes=rows,
        num_inserts=rows if created else 0,
        total_write_bytes=size,
        partition_path=file.partition_path,
        total_log_records=logged,
        total_log_files_compacted=len(piece.log_files),
        total_log_size_compacted=sum(log.size for log in piece.log_files),
        total_log_blocks=len(sources) - 1,
        file_size_in_bytes=size,
        runtime_stats={
            "totalScanTime": scan_ms,
            "totalUpsertTime": 0 if created else write_ms,
            "totalCreateTime": write_ms if created else 0,
        },
    )
