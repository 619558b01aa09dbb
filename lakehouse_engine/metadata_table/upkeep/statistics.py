"""Changes of `column_stats`, `partition_stats`, `bloom_filters` and expression indexes for the files of a commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.format.metadata_table.keys import bloom_filter_keys, column_prefix, column_stats_keys, partition_stats_keys
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.metadata_table.expressions.index import kept_expressions
from lakehouse_engine.metadata_table.expressions.records import changed_records, forgotten_keys
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from lakehouse_engine.metadata_table.records.columns import indexed_columns
from lakehouse_engine.metadata_table.records.filters import bloom_filter_records
from lakehouse_engine.metadata_table.records.joining import joined
from lakehouse_engine.metadata_table.records.statistics import base_file_statistics, log_statistics, partition_statistics
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.keys import FileGroupId

_NONE = pa.array([], pa.binary())


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Data files of a commit."""

    bases: tuple[BaseFile, ...]
    logs: tuple[LogFile, ...]

    @classmethod
    def of(cls, metadata: HoodieCommitMetadata) -> NewFiles:
        bases: list[BaseFile] = []
        logs: list[LogFile] = []
        for path, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                name = (stat.path or "").rpartition("/")[2]
                if is_base_file_name(name):
                    bases.append(parse_base_file(path, name, stat.file_size_in_bytes))
                elif is_log_file_name(name):
                    logs.append(parse_log_file(path, name, stat.file_size_in_bytes))
        return cls(tuple(bases), tuple(log for log in logs if not log.is_cdc))


def statistics_of_commit(table: MetadataTable, instant_time: str, metadata: HoodieCommitMetadata) -> dict[str, tuple[Records, pa.Array]]:
    """Records to put and keys to delete, by partition of the metadata table, for those of the three that the table has, and for the
    expression indexes that are kept up. Statistics of partitions rest on all of `column_stats`, and are built once that is complete.
    """
    files, found = NewFiles.of(metadata), dict[str, tuple[Records, pa.Array]]()
    if BLOOM_FILTERS in table.kept:
        found[BLOOM_FILTERS] = (bloom_filter_records(table.data, files.bases), _NONE)
    if COLUMN_STATS in table.kept:
        written = joined([base_file_statistics(table.data, files.bases), log_statistics(table.data, files.logs)])
        found[COLUMN_STATS] = (written, _NONE)
        if PARTITION_STATS in table.partitions:
            found[PARTITION_STATS] = _of_partitions(table, instant_time, metadata, files, written)
    expressions = kept_expressions(table.data, table.kept)
    if expressions:
        after = {path: list(_slices_after(table, instant_time, metadata, files, path)) for path in _touched(metadata)}
        found |= {name: changed_records(table, index, (*files.bases, *files.logs), after) for name, index in expressions.items()}
    return found


def _touched(metadata: HoodieCommitMetadata) -> list[str]:
    return sorted({*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or {})})


def _of_partitions(
    table: MetadataTable, instant_time: str, metadata: HoodieCommitMetadata, files: NewFiles, written: Records
) -> tuple[Records, pa.Array]:
    """Statistics of the partitions that the commit touches, over the files that make them after it. Records without a successor go."""
    paths = _touched(metadata)
    columns = indexed_columns(table.data)
    slices = [piece for path in paths for piece in _slices_after(table, instant_time, metadata, files, path)]
    stored = table.with_prefixes(COLUMN_STATS, [column_prefix(column, path) for column in columns for path in paths])
    records = partition_statistics(table.data, slices, joined([stored, written]))
    every = [(column, path) for column in columns for path in paths]
    keys = partition_stats_keys(*(pa.array([one[place] for one in every], pa.string()) for place in (0, 1)))
    return records, keys.filter(pc.invert(pc.is_in(keys, records.keys)))


def _slices_after(
    table: MetadataTable, instant_time: str, metadata: HoodieCommitMetadata, files: NewFiles, path: str
) -> Iterator[FileSlice]:
    """Newest slices of a partition after the commit `instant_time`."""
    replaced = set((metadata.partition_to_replace_file_ids or {}).get(path, ()))
    bases = {base.file_id: base for base in files.bases if base.partition_path == path}
    logs: dict[str, list[LogFile]] = {}
    for log in files.logs:
        if log.partition_path == path:
            logs.setdefault(log.file_id, []).append(log)
    before = {piece.file_id: piece for piece in table.data.view.latest_slices(path) if piece.file_id not in replaced}
    for file_id in sorted({*before, *bases, *logs}):
        own = tuple(logs.get(file_id, ()))
        if file_id in bases:
            # Writers log to the slice of a compaction once it is planned.
            own = (*own, *_logged_since(table, path, file_id, instant_time))
            yield FileSlice(FileGroupId(path, file_id), instant_time, bases[file_id], own)
        elif file_id in before:
            yield replace(before[file_id], log_files=(*before[file_id].log_files, *own))
        else:
            yield FileSlice(FileGroupId(path, file_id), own[0].instant_time, None, own)


def _logged_since(table: MetadataTable, path: str, file_id: str, instant_time: str) -> Iterator[LogFile]:
    for group in table.data.view.file_groups(path):
        if group.group.file_id == file_id:
            yield from (log for piece in group.slices if piece.base_instant == instant_time for log in piece.log_files)


def forgotten_files(table: MetadataTable, removed: Mapping[str, Iterable[str]]) -> dict[str, pa.Array]:
    """Keys to delete for files that a clean removed, by partition of the metadata table."""
    listed = [(path, name) for path, names in removed.items() for name in names]
    paths, names = (pa.array([one[place] for one in listed], pa.string()) for place in (0, 1))
    found: dict[str, pa.Array] = {}
    if not listed:
        return found
    if BLOOM_FILTERS in table.kept:
        found[BLOOM_FILTERS] = bloom_filter_keys(paths, names)
    if COLUMN_STATS in table.kept:
        columns = indexed_columns(table.data)
        each = [column_stats_keys(pa.repeat(column, len(paths)), paths, names) for column in columns]
        found[COLUMN_STATS] = pa.concat_arrays(each) if each else _NONE
    return {**found, **{name: forgotten_keys(index, paths, names) for name, index in kept_expressions(table.data, table.kept).items()}}
