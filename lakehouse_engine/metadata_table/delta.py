"""Writes delta commits of a metadata table, and takes them back (design: metadata table, sections 3, 8.1 and 8.4).

A delta commit has the instant of the action that it belongs to. Its blocks count once the action is completed, so it is completed first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from zlib import crc32

import numpy as np
import pyarrow as pa

from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.file_names import is_log_file_name, write_token
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.writer import sorted_cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.hfile_block import render_hfile_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.metadata_table.building.groups import open_group
from lakehouse_engine.metadata_table.compaction import planned_slice
from lakehouse_engine.metadata_table.completeness import is_built_in, is_in_a_build
from lakehouse_engine.metadata_table.opened import FIRST_TOKEN, listed_logs
from lakehouse_engine.metadata_table.partitions import FILES, RECORD_INDEX, data_partition, group_number, group_numbers, record_index_group
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata, checksum_metadata
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

_TOKEN = write_token(0, 0, 1)
_META_FIELDS = "_hoodie_"


@dataclass(frozen=True, slots=True)
class Change:
    """What a delta commit does to a partition of the metadata table: `put` entries (encoded payloads, unique keys), and `deleted` keys
    (`binary`). A key is in one of the two. `within` names the data partition of the entries of a partitioned record index. `route` gives
    the part of each key that is hashed to a file group (None: all of it).
    """

    put: Cells = field(default_factory=Cells.empty)
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.binary()))
    within: str | None = None
    route: Callable[[pa.Array], pa.Array] | None = None

    def __bool__(self) -> bool:
        return bool(len(self.put) or len(self.deleted))

    def of_groups(self, numbers: Sequence[int]) -> Iterator[Change]:
        """The part of the change that belongs to each file group; `numbers` are those of all file groups that share the entries."""
        put, deleted = (
            group_numbers(keys if self.route is None else self.route(keys), len(numbers)) for keys in (self.put.keys, self.deleted)
        )
        for number in numbers:
            puts, deletes = (pa.array(np.flatnonzero(of_key == number)) for of_key in (put, deleted))
            yield replace(self, put=Cells(self.put.keys.take(puts), self.put.values.take(puts)), deleted=self.deleted.take(deletes))


Changes = Mapping[str, Sequence[Change]]
"""Changes by partition of the metadata table."""


def encoded(schema_text: str, records: Records) -> Cells:
    """Entries of records, for `Change.put`."""
    return Cells(records.keys.cast(pa.binary()), encode_payloads(schema_text, records.payloads))


def schema_in_use(table: MetadataTable) -> str:
    """Avro schema of the newest file of the partition `files`, which new entries keep (section 4.1)."""
    texts = (source.schema for piece in table.groups(FILES) for source in reversed(table.sources(piece)) if source.schema)
    return next(texts, None) or record_schema(table.data.config.version)


def write_delta(table: MetadataTable, instant_time: str, changes: Changes, schema_text: str, completed_at: str | None) -> None:
    """Complete the delta commit `instant_time` with these changes. The data table's lock is held, and the metadata table has no instant of
    that time. `completed_at` is its completion time (None in version 6), before that of the action.

    Raises `UnavailableError` for a partition that the metadata table does not have.
    """
    state = table.state
    requested = state.active.create_requested(Instant(instant_time, Action.DELTA_COMMIT, State.REQUESTED))
    inflight = state.active.to_inflight(requested, _inflight(table, schema_text))
    stats: dict[str, tuple[HoodieWriteStat, ...]] = {}
    for partition, parts in changes.items():
        written = [stat for change in parts if change for stat in _written(table, partition, change, instant_time, schema_text)]
        if written:
            stats[partition] = tuple(written)
    state.active.complete(inflight, state.format.encode_commit(_metadata(stats, schema_text)), completed_at)


def _inflight(table: MetadataTable, schema_text: str) -> bytes:
    table_format = table.state.format
    return b"" if table_format.completes_with_time else table_format.encode_commit(_metadata({}, schema_text))


def _metadata(stats: dict[str, tuple[HoodieWriteStat, ...]], schema_text: str) -> HoodieCommitMetadata:
    return HoodieCommitMetadata(
        partition_to_write_stats=stats,
        operation_type=WriteOperationType.UPSERT_PREPPED,
        extra_metadata={SCHEMA_KEY: _without_meta_fields(schema_text), **checksum_metadata(chain.from_iterable(stats.values()))},
    )


def _without_meta_fields(schema_text: str) -> str:
    schema = json.loads(schema_text)
    schema["fields"] = [one for one in schema["fields"] if not one["name"].startswith(_META_FIELDS)]
    return json.dumps(schema, separators=(",", ":"))


def _written(
    table: MetadataTable, partition: str, change: Change, instant_time: str, schema_text: str
) -> Iterator[HoodieWriteStat]:
    """Write one log file for each file group that the change reaches."""
    groups = [piece for piece in table.groups(partition) if data_partition(piece.file_id) == change.within]
    if not groups:
        groups = [_new_group(table, partition, change.within, instant_time)]
    for piece, mine in zip(groups, change.of_groups([group_number(piece.file_id) for piece in groups]), strict=True):
        if mine:
            yield _log(table, partition, piece, mine, instant_time, schema_text)


def _new_group(table: MetadataTable, partition: str, within: str | None, instant_time: str) -> FileSlice:
    """The only file group of a data partition that a partitioned record index does not know yet, made with an empty delete block."""
    if partition != RECORD_INDEX or within is None:
        raise UnavailableError(f"the metadata table of {table.data.config.name} has no file group in {partition}", partition=partition)
    group = FileGroupId(partition, record_index_group(within, 0))
    log = open_group(table.state.storage, partition, group.file_id, instant_time)
    return FileSlice(group, instant_time, None, (log,))


def _log(
    table: MetadataTable, partition: str, piece: FileSlice, change: Change, instant_time: str, schema_text: str
) -> HoodieWriteStat:
    content = _blocks(partition, change, instant_time, schema_text)
    log = _next_log(table, piece, instant_time)
    table.state.storage.create(log.path, content)
    shares_slice = not table.state.format.logs_by_writer
    return HoodieWriteStat(
        file_id=piece.file_id,
        path=log.path,
        partition_path=partition,
        prev_commit=piece.base_instant,
        num_writes=len(change.put),
        num_update_writes=len(change.put),
        num_deletes=len(change.deleted),
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
        log_version=log.version,
        log_offset=0,
        checksum=f"{crc32(content):08x}",
        base_file="" if piece.base_file is None else piece.base_file.name,
        log_files=(*(one.name for one in piece.log_files if shares_slice), log.name),
    )


def _blocks(partition: str, change: Change, instant_time: str, schema_text: str) -> bytes:
    parts = []
    if len(change.put):
        parts.append(render_hfile_block(instant_time, schema_text, sorted_cells(change.put.keys, change.put.values)))
    if len(change.deleted):
        header: dict[int, str] = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: schema_text}
        keys = change.deleted.cast(pa.string())
        parts.append(render_block(BlockType.DELETE, header, encode_delete_content(keys, pa.repeat(partition, len(keys)))))
    return b"".join(parts)


def _next_log(table: MetadataTable, piece: FileSlice, instant_time: str) -> LogFile:
    """Named by its writer in versions 8 and 9, in version 6 by the slice, which a pending compaction may be about to make: it merges only
    the logs that its plan names.
    """
    if table.state.format.logs_by_writer:
        return LogFile(piece.partition_path, piece.file_id, instant_time, 1, _TOKEN)
    begun = planned_slice(table.state, piece.group) or piece.base_instant
    version = max((log.version for log in piece.log_files if log.instant_time == begun), default=0) + 1
    return LogFile(piece.partition_path, piece.file_id, begun, version, _TOKEN)


def is_taken_in(table: MetadataTable, instant_time: str) -> bool:
    """True if what an instant did cannot be taken back: a build has it, of `files` or of another partition since, or its delta commit was
    merged by a compaction, or archived.
    """
    found = table.state.timeline.find(instant_time)
    if found is None:
        return table.state.timeline.is_before_start(instant_time) or is_built_in(table, instant_time)
    return found.is_completed and (bool(_merged(table, found)) or is_in_a_build(table, found))


def _merged(table: MetadataTable, instant: Instant) -> list[str]:
    """Log files of a completed delta commit that are in no newest slice any more, by name; of partitions that are still there."""
    stats, kept = table.state.commit_metadata(instant).partition_to_write_stats, table.kept
    gone = []
    for partition, written in ((name, stats[name]) for name in stats if name in kept):
        newest = {log.name for piece in table.groups(partition) for log in piece.log_files}
        names = [(stat.path or "").rpartition("/")[2] for stat in written]
        gone += [name for name in names if is_log_file_name(name) and name not in newest]
    return gone


def take_back_delta(table: MetadataTable, instant_time: str) -> bool:
    """Remove a delta commit, if there is one: its log files, then its instant. Returns False, with nothing changed, if `is_taken_in`."""
    if is_taken_in(table, instant_time):
        return False
    found = table.state.timeline.find(instant_time)
    if found is None:
        return True
    for path in list(_logs_of(table, found)):
        table.state.storage.delete(path)
    if found.is_completed:
        table.state.active.delete(found)
    table.state.active.delete_pending(Instant(instant_time, Action.DELTA_COMMIT, State.INFLIGHT))
    return True


def _logs_of(table: MetadataTable, instant: Instant) -> Iterator[str]:
    """Log files of a delta commit: those that it names, or else those with no block of another instant."""
    if instant.is_completed:
        for stat in table.state.commit_metadata(instant).write_stats():
            yield stat.path or ""
        yield from _first_logs(table, instant.requested_time)
        return
    for entry in table.state.storage.list():
        if entry.is_directory and not entry.name.startswith("."):
            yield from _pending_logs(table, entry.name, instant.requested_time)


def _first_logs(table: MetadataTable, instant_time: str) -> Iterator[str]:
    """Empty first logs of file groups that the instant added to a partitioned record index."""
    if RECORD_INDEX in table.partitions:
        for log in listed_logs(table.state, RECORD_INDEX):
            if log.instant_time == instant_time and log.write_token == FIRST_TOKEN:
                yield log.path


def _pending_logs(table: MetadataTable, partition: str, instant_time: str) -> Iterator[str]:
    for log in listed_logs(table.state, partition):
        if table.state.format.logs_by_writer:
            is_its = log.instant_time == instant_time
        else:
            is_its = {block.instant_time for block in read_blocks(mapped(table.state.storage, log.path))} == {instant_time}
        if is_its:
            yield log.path

