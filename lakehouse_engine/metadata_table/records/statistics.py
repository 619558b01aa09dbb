"""Records of `column_stats` and `partition_stats`, derived from data files (design: metadata table, sections 4.6 and 4.7).

Hudi takes a column for all null in a file that has statistics of other columns only, and never rules out a file without any. So a file has
records of all indexed columns, whose bounds hold every value, or none. A partition without records is ruled out by Hudi 1.2: each has all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.engine import REQUESTS_AT_ONCE, LocalRunner
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.column_bounds import ColumnBounds, columns_bounds, is_rebased
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.log_records import block_rows
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.log.blocks import DATA_BLOCKS
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.metadata_table.bounds import V1_DECIMAL
from lakehouse_engine.format.metadata_table.keys import column_stats_keys, partition_stats_keys
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import STATS, RecordType
from lakehouse_engine.format.metadata_table.statistics import COUNTS, fold_stats, stats_payloads
from lakehouse_engine.metadata_table.records.columns import IndexedColumns, indexed
from lakehouse_engine.metadata_table.records.joining import completed, joined
from lakehouse_engine.metadata_table.records.value_ranges import ValueRanges, widened
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

File = TypeVar("File", BaseFile, LogFile)

_AT_ONCE = 4096
"""Files whose statistics are in memory as objects."""


@dataclass(frozen=True, slots=True)
class _Described:
    """A file, and the range of each indexed column in it."""

    file: BaseFile | LogFile
    ranges: Sequence[ColumnBounds]


def base_file_statistics(data: TableState, files: Sequence[BaseFile], columns: Sequence[str] | None = None) -> Records:
    """Records of `column_stats` for base files and the given columns (None: `indexed_columns`), from footers.

    Bounds that a footer does not have, or that may leave out values, come from the rows of that column; they are wider where Spark reads
    another day than is stored (`is_rebased`), and infinite with NaN. A column that a file lacks is null. In version 6, a file with decimals
    that records cannot hold has none.

    Raises as `FOOTERS.read` and `read_base_file`.
    """
    wanted, user = indexed(data, columns), table_schema(data)
    return joined(_records(part, wanted) for part in _described(files, partial(base_ranges, data.storage, user, wanted)))


def log_statistics(data: TableState, logs: Sequence[LogFile], columns: Sequence[str] | None = None) -> Records:
    """Records of `column_stats` for log files and the given columns (None: `indexed_columns`), over the rows of all their data blocks.

    A log file without rows has counts of 0. Files of change data capture have no records, nor have decimals that these cannot hold.

    Raises `CorruptLogError` if a block does not decode, `StoredFileNotFoundError` if a file is gone.
    """
    wanted, with_rows = indexed(data, columns), [log for log in logs if not log.is_cdc]
    return joined(_records(part, wanted) for part in _described(with_rows, partial(log_ranges, data.storage, wanted)))


def partition_statistics(
    data: TableState, slices: Iterable[FileSlice], statistics: Records, columns: Sequence[str] | None = None
) -> Records:
    """Records of `partition_stats` (versions 8 and 9) over the files of `slices`, which are all latest ones of their partitions.

    `statistics` are records of `column_stats`; those that are missing there, or have no bounds, are derived from the files. Raises as
    `base_file_statistics` and `log_statistics`.
    """
    wanted, pieces = indexed(data, columns), list(slices)
    names = [field.name for field in wanted.fields]
    files = [file for piece in pieces for file in files_of(piece)]
    if not files or not names:
        return joined(())
    known = _all_known(data, files, _bounded(statistics), names)
    places = pc.index_in(_keys(files, names), known.keys)
    paths = pa.array([file.partition_path for file in files], pa.string()).dictionary_encode()
    codes = (np.asarray(paths.indices).astype(np.int64)[:, None] * len(names) + np.arange(len(names))).ravel()
    identity = paths.dictionary.take(pa.array(np.repeat(np.arange(len(paths.dictionary)), len(names))))
    return _of_partitions(codes, known.payloads.column(STATS).combine_chunks().take(places), identity, names * len(paths.dictionary))


def _of_partitions(codes: npt.NDArray[np.int64], stats: pa.Array, paths: pa.Array, columns: Sequence[str]) -> Records:
    """`codes` number the partition and column of each of `stats`; `paths` and `columns` name those of each code."""
    names = pa.array(columns, pa.string())
    return Records(partition_stats_keys(names, paths), partition_payloads(codes, stats, paths))


def partition_payloads(codes: npt.NDArray[np.int64], stats: pa.Array, paths: pa.Array) -> pa.Table:
    """Payloads with the statistics of files as one for each of `paths`; `codes` say which of these each of `stats` is about."""
    # Statistics without values do not say the type of the bounds.
    order = np.argsort(np.asarray(pc.greater(stats.field("valueCount"), 0)), kind="stable")
    codes, stats = codes[order], _renamed(stats.take(pa.array(order)), paths.take(pa.array(codes[order])), is_tight=False)
    whole = _renamed(fold_stats(codes, len(paths), stats), paths, is_tight=True)
    kind = pa.array(np.full(len(paths), RecordType.PARTITION_STATS, np.int32))
    return completed(pa.table({"type": kind, STATS: whole}))


def _renamed(stats: pa.Array, names: pa.Array, *, is_tight: bool) -> pa.Array:
    changed = {"fileName": names, "isTightBound": pa.repeat(is_tight, len(stats))}
    children = [changed.get(field.name, stats.field(field.name)) for field in stats.type]
    return pa.StructArray.from_arrays(children, fields=list(stats.type))


def _bounded(statistics: Records) -> Records:
    """Records without those that have values, but no bounds."""
    stats = statistics.payloads.column(STATS).combine_chunks()
    lacking = pc.or_(stats.field("minValue").is_null(), stats.field("maxValue").is_null())
    kept = pc.invert(pc.and_(lacking, pc.less(stats.field("nullCount"), stats.field("valueCount"))))
    return Records(statistics.keys.filter(kept), statistics.payloads.filter(kept))


def _all_known(data: TableState, files: Sequence[BaseFile | LogFile], statistics: Records, names: Sequence[str]) -> Records:
    """`statistics`, and those of the files for which there is not one for every column."""
    there = np.asarray(pc.is_in(_keys(files, names), value_set=statistics.keys)).reshape(len(files), len(names))
    others = [files[place] for place in np.flatnonzero(~np.all(there, axis=1)).tolist()]
    bases, logs = [one for one in others if isinstance(one, BaseFile)], [one for one in others if isinstance(one, LogFile)]
    return joined([base_file_statistics(data, bases, names), log_statistics(data, logs, names), statistics])


def _keys(files: Sequence[BaseFile | LogFile], names: Sequence[str]) -> pa.Array:
    """Key of each column of each file."""
    columns = pa.array(list(names) * len(files), pa.string())
    paths = pa.array(np.repeat(np.array([file.partition_path for file in files], object), len(names)), pa.string())
    return column_stats_keys(columns, paths, pa.array(np.repeat(np.array([file.name for file in files], object), len(names)), pa.string()))


def files_of(piece: FileSlice) -> Iterator[BaseFile | LogFile]:
    """Files of a slice that have statistics."""
    if piece.base_file is not None:
        yield piece.base_file
    yield from (log for log in piece.log_files if not log.is_cdc)


def _described(files: Sequence[File], ranges: Callable[[File], list[ColumnBounds] | None]) -> Iterator[list[_Described]]:
    runner = LocalRunner(REQUESTS_AT_ONCE)
    for start in range(0, len(files), _AT_ONCE):
        part = files[start : start + _AT_ONCE]
        found = zip(part, runner.run(ranges, part, name="statistics"), strict=True)
        yield [_Described(file, one) for file, one in found if one is not None]


def base_ranges(storage: Storage, user: pa.Schema, wanted: IndexedColumns, file: BaseFile) -> list[ColumnBounds] | None:
    """Range of each wanted column in a base file, as `base_file_statistics` has it; None if records cannot hold one."""
    footer = FOOTERS.read(storage, file)
    rebased = is_rebased(footer, first_right=b"3.1")
    found = columns_bounds(footer, wanted.fields, file.path, wanted.others)
    unsure = [place for place, one in enumerate(found) if not one.is_exact]
    if unsure:
        ranges = ValueRanges.of([wanted.fields[place] for place in unsure])
        for rows in iter_base_file(storage, file, user, columns=ranges.schema.names):
            ranges.add(rows.cast(ranges.schema))
        for place, one in zip(unsure, ranges.found, strict=True):
            found[place] = replace(one, size=found[place].size, raw_size=found[place].raw_size)
    if rebased:
        kinds = (field.type for field in wanted.fields)
        found = [widened(one) if pat.is_date(kind) or pat.is_timestamp(kind) else one for kind, one in zip(kinds, found, strict=True)]
    return found if _are_held(wanted, found) else None


def _are_held(wanted: IndexedColumns, ranges: Sequence[ColumnBounds]) -> bool:
    """True if records can hold all decimals, of which those of version V1 have 15 digits before and after the point."""
    if wanted.by_value_type:
        return True
    try:
        for field, one in zip(wanted.fields, ranges, strict=True):
            if pat.is_decimal(field.type) and one.has_bounds:
                pa.array([one.least, one.greatest], field.type).cast(V1_DECIMAL)
    except pa.ArrowInvalid:
        return False
    return True


def log_ranges(storage: Storage, wanted: IndexedColumns, log: LogFile) -> list[ColumnBounds] | None:
    """Like `base_ranges`, over the rows of a log file."""
    ranges = ValueRanges.of(wanted.fields)
    for rows in log_rows(storage, log, ranges.schema):
        ranges.add(rows)
    return ranges.found if _are_held(wanted, ranges.found) else None


def log_rows(storage: Storage, log: LogFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows of all data blocks of a log file, in the columns of `schema`."""
    for block in read_blocks(mapped(storage, log.path)):
        if block.type in DATA_BLOCKS:
            yield block_rows(block, log.path, schema)[0]


def _records(files: Sequence[_Described], wanted: IndexedColumns) -> Records:
    fields = enumerate(wanted.fields)
    return joined(_of_column(files, field, [one.ranges[place] for one in files], wanted) for place, field in fields)


def _of_column(files: Sequence[_Described], field: pa.Field, ranges: Sequence[ColumnBounds], wanted: IndexedColumns) -> Records:
    names = pa.array([one.file.name for one in files], pa.string())
    least, greatest = (pa.array([getattr(one, end) for one in ranges], field.type) for end in ("least", "greatest"))
    members = ("values", "nulls", "size", "raw_size")
    counts = pa.table([pa.array([getattr(one, name) for one in ranges], pa.int64()) for name in members], names=COUNTS)
    payloads = stats_payloads(names, field.name, *_signed_zeros(least, greatest), counts, by_value_type=wanted.by_value_type)
    columns, paths = pa.repeat(field.name, len(files)), pa.array([one.file.partition_path for one in files], pa.string())
    return Records(column_stats_keys(columns, paths, names), completed(payloads))


def _signed_zeros(least: pa.Array, greatest: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds whose zeros are -0.0 and +0.0, since Java orders these."""
    if not pat.is_floating(least.type):
        return least, greatest
    low, high = (pa.scalar(zero, least.type) for zero in (-0.0, 0.0))
    return pc.if_else(pc.equal(least, high), low, least), pc.if_else(pc.equal(greatest, low), high, greatest)
