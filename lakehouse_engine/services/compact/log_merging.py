"""Merges all blocks of a slice's logs into one log file: the task per slice of a log compaction (hudi-format 5.2, 5.4)."""

from __future__ import annotations

import secrets
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.files.base_positions import PositionForm
from lakehouse_engine.files.log_records import DELETED, LogOutcome, values_of_fields
from lakehouse_engine.files.log_scanner import ScannedLogs
from lakehouse_engine.files.row_pool import SpillTo, take_rows
from lakehouse_engine.files.slice_reader import SliceMerge, SliceReader
from lakehouse_engine.format.avro.avro_schema import without_columns
from lakehouse_engine.format.file_names import MarkerType, marker_folder, write_token
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block, render_parquet_block
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.order import age, in_time_order
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.tasks.base_files import FileContext, attempt_at

Rows = npt.NDArray[np.int64]

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogCompactTask:
    """One slice, numbered by `task`. `piece` has all its logs; rows beyond `memory_bytes` are spilled to files."""

    context: FileContext
    task: int
    reader: SliceReader
    piece: LoggedSlice
    memory_bytes: int


def compact_logs(task: LogCompactTask) -> HoodieWriteStat:
    """Write a log file that replaces all blocks of the slice so far; returns its stat for the commit record.

    Rows keep their commit time and seqno. Deletions keep their ordering values, or the int 0 with which they always apply.
    """
    context, piece, began = task.context, task.piece.slice, time.monotonic()
    columns = (*META_COLUMNS, *context.schema.names)
    version = 1 if context.logs_by_writer else max(log.version for log in piece.log_files) + 1
    named = context.instant_time if context.logs_by_writer else piece.base_instant
    token = write_token(task.task, 0, secrets.randbelow(1_000_000))
    file = LogFile(piece.partition_path, piece.file_id, named, version, token)
    spill = SpillTo(context.storage, f"{marker_folder(context.instant_time)}/.spill/{file.name}", task.memory_bytes)
    try:
        merge = task.reader.merge(task.piece, columns, spill)
        scan_ms = int((time.monotonic() - began) * 1000)
        header = _header(context, merge.scanned)
        rule = merge.rules.settled(context.schema) if merge.settled else None
        form = PositionForm(piece.base_file, rule, in_headers=context.logs_by_writer)
        data = _data_blocks(task, header, merge.outcome, columns, form)
        content = b"".join([*data, *_delete_blocks(task, header, merge, form)])
    finally:
        context.storage.delete_tree(spill.folder)
    attempt = attempt_at(context, file, MarkerType.APPEND)
    attempt.begin()
    context.storage.create(file.path, content)
    attempt.end()
    write_ms = int((time.monotonic() - began) * 1000) - scan_ms
    stat = _stat(piece, merge, file, len(content), {"totalScanTime": scan_ms, "totalUpsertTime": write_ms})
    return replace(stat, checksum=f"{zlib.crc32(content):08x}")


def _header(context: FileContext, scanned: ScannedLogs) -> dict[int, str]:
    times = {found.block.instant_time for found in scanned.blocks if found.block.instant_time}
    return {
        HeaderKey.INSTANT_TIME: context.instant_time,
        HeaderKey.SCHEMA: context.avro_schema,
        HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(in_time_order(times, age, newest_first=True)),
    }


def _data_blocks(
    task: LogCompactTask, header: dict[int, str], outcome: LogOutcome, columns: Sequence[str], form: PositionForm
) -> Iterator[bytes]:
    """Blocks with the final row of each key, in the order of the logs; rows that lack some columns get blocks of their own."""
    codes = np.flatnonzero(outcome.rows >= 0)
    codes = codes[np.argsort(outcome.rows[codes], kind="stable")]
    parts = [(frozenset[str](), np.arange(len(codes)))] if outcome.absent is None else outcome.absent.take(outcome.rows[codes]).by_columns()
    for absent, some in parts:
        present = [name for name in columns if name not in absent]
        yield from _blocks_of(task, _partly(header, absent) if absent else header, outcome, present, codes[some], form)


def _partly(header: dict[int, str], absent: frozenset[str]) -> dict[int, str]:
    """The header of blocks whose rows lack these columns."""
    return {**header, HeaderKey.SCHEMA: without_columns(header[HeaderKey.SCHEMA], absent), HeaderKey.IS_PARTIAL: "true"}


def _blocks_of(
    task: LogCompactTask, header: dict[int, str], outcome: LogOutcome, columns: Sequence[str], codes: Rows, form: PositionForm
) -> Iterator[bytes]:
    """The rows of some keys, in data blocks of `write.batch.size` each; usually one block."""
    context, data = task.context, outcome.data.select(list(columns))
    step = max(1, int(data.num_rows * context.options.batch_size_mb * _MEGABYTE / max(1, data.nbytes)))
    for start in range(0, len(codes), step):
        keys = codes[start : start + step]
        said = form.of_rows(_positions(outcome, keys))
        some = take_rows(data, outcome.rows[keys if said.order is None else keys[said.order]]).combine_chunks()
        positioned = {**header, **said.header}
        if context.options.log_block_format == "AVRO":
            yield render_block(BlockType.AVRO_DATA, positioned, render_avro_block(header[HeaderKey.SCHEMA], some))
        else:
            yield render_block(BlockType.PARQUET_DATA, positioned, render_parquet_block(some, footer=said.footer))


def _positions(outcome: LogOutcome, codes: Rows) -> Rows | None:
    return None if outcome.positions is None else outcome.positions[codes]


def _delete_blocks(task: LogCompactTask, header: dict[int, str], merge: SliceMerge, form: PositionForm) -> Iterator[bytes]:
    """Deletions that always apply, then those with ordering values: in one block, an entry without a value would mean "null"."""
    deleted = np.flatnonzero(merge.outcome.rows == DELETED)
    if not len(deleted):
        return
    always = np.asarray(merge.outcome.deletions(deleted).is_null())
    for codes, valued in ((deleted[always], False), (deleted[~always], True)):
        if len(codes):
            said = form.of_deletions(_positions(merge.outcome, codes))
            codes = codes if said.order is None else codes[said.order]
            keys, partitions = merge.outcome.known_keys.take(pa.array(codes)), pa.repeat(task.piece.slice.partition_path, len(codes))
            values = values_of_fields(merge.outcome.deletions(codes)) if valued else []
            one, several = (values[0], ()) if len(values) == 1 else (None, values)
            content = encode_delete_content(keys, partitions, one, orderings=several)
            yield render_block(BlockType.DELETE, {**header, **said.header}, content)


def _stat(
    piece: FileSlice, merge: SliceMerge, file: LogFile, size: int, runtime: dict[str, int]
) -> HoodieWriteStat:
    """The write stat, filled as by Hudi's `HoodieAppendHandle` and `HoodieLogCompactor`."""
    scanned, rows = merge.scanned, int((merge.outcome.rows >= 0).sum())
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        prev_commit=piece.base_instant,
        partition_path=file.partition_path,
        num_writes=rows,
        num_update_writes=rows,
        num_deletes=len(merge.outcome.rows) - rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
        total_log_records=merge.outcome.records,
        total_log_files_compacted=scanned.files,
        total_log_size_compacted=sum(log.size for log in piece.log_files),
        total_updated_records_compacted=len(merge.outcome.rows),
        total_log_blocks=scanned.total,
        total_corrupt_log_block=scanned.corrupt,
        total_rollback_blocks=scanned.rollbacks,
        runtime_stats={**runtime, "totalCreateTime": 0},
        log_version=file.version,
        log_offset=0,
        base_file=piece.base_file.name if piece.base_file else "",
        log_files=(*(log.name for log in piece.log_files), file.name),
    )
