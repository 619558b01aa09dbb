"""What the metadata table guarantees about files, so that not even their footers are opened: column statistics, and the record index.

It is asked only if it knows every completed instant. Its statistics are those of this engine, which hold every value, or those of Hudi,
which do not always. Hudi joins the footers of a file's row groups, and passes over those without bounds: row groups of floating point
numbers with NaN, and of texts of more than 4 KB. A row group without any statistics counts as all null there (Hudi
`ParquetUtils.readColumnStatsFromMetadata`). So bounds of floating point numbers and counts of nulls by Hudi prove nothing, and bounds of
texts only in files of Hudi's own without nulls: Java's Parquet writer leaves out all statistics of a row group, or none.

Nor does it trust bounds that readers may order differently than Hudi: days and timestamps before the Gregorian calendar, and texts with
characters that Java orders by their surrogates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.metadata_table.answers import LISTED, Statistics, column_statistics
from lakehouse_engine.metadata_table.building.plans import is_built_elsewhere
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.commit_metadata import WRITER_KEY
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import RECORD_KEY, FileGroupId
from lakehouse_engine.read.guarantees import Bounds
from lakehouse_engine.read.points import groups_with_keys
from lakehouse_engine.read.pruning import may_be_foreign
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.statistics import EVERY, together, within
from lakehouse_engine.read.told import Told, remembered
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

WORTH_ASKING = 8
"""Fewest files or slices: below that, opening footers takes no longer than opening the metadata table."""
_MOST_PARTITIONS = 64
"""With more partitions, statistics of all of them are read at once."""
_FIRST_DAY = date(1582, 10, 15)
_ORDERED_OTHERWISE = "[\\x{E000}-\\x{10FFFF}]"


@dataclass(frozen=True, slots=True, eq=False)
class FromMetadataTable:
    """Guarantees from a trusted metadata table; those that it cannot give are unknown. `newest`: the record index may be asked."""

    trusted: Trusted
    newest: bool = False

    def groups(self, wanted: RowFilter, slices: int) -> Collection[FileGroupId] | None:
        return groups_with_keys(self.trusted, wanted) if self.newest and slices >= WORTH_ASKING else None

    def without_rows(
        self, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, *, verify: bool = True
    ) -> frozenset[str]:
        fields = [wanted.schema.field(name) for name in wanted.columns if _is_ordered(wanted.schema.field(name).type)]
        if wanted.rounds or not fields or len(files) < WORTH_ASKING or not self.trusted.has(COLUMN_STATS):
            return frozenset()

        def find() -> Told | None:
            return self.trusted.answer(COLUMN_STATS, lambda table: Told.of(_guaranteed(table, files, fields), wanted))

        told = remembered(COLUMN_STATS, storage, files, wanted, find)
        return frozenset() if told is None else told.ruled_out(files, wanted)

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> list[Bounds | None]:
        unknown: list[Bounds | None] = [None] * len(bases)
        if len(bases) < WORTH_ASKING or not self.trusted.has(COLUMN_STATS):
            return unknown
        key = pa.field(RECORD_KEY, pa.string())
        found = self.trusted.answer(COLUMN_STATS, lambda table: _Known.of(table, bases, [key]).of_column(key))
        if found is None:
            return unknown
        ends = zip(found.least.to_pylist(), found.greatest.to_pylist(), found.is_bounded.to_pylist(), strict=True)
        return [(least, greatest) if is_bounded else None for least, greatest, is_bounded in ends]


def _is_ordered(kind: pa.DataType) -> bool:
    ordered = (pat.is_signed_integer, pat.is_floating, pat.is_decimal, pat.is_date32, pat.is_timestamp, pat.is_string)
    return any(member(kind) for member in ordered)


def _guaranteed(table: MetadataTable, files: Sequence[BaseFile], fields: Sequence[pa.Field]) -> list[list[pc.Expression]]:
    """For each file: alternatives for its rows, of which its statistics guarantee one."""
    known = _Known.of(table, files, fields)
    columns = [known.of_column(field).guarantees(field) for field in fields]
    return [together(column[number] for column in columns) for number in range(len(files))]


@dataclass(frozen=True, slots=True)
class _Known:
    """Statistics of some files, and how far they can be believed: `is_ours`, all of this engine; `by_hudi`, for each file whether Hudi is
    known to have written it.
    """

    statistics: Statistics
    files: pa.Table
    is_ours: bool
    by_hudi: pa.Array

    @classmethod
    def of(cls, table: MetadataTable, files: Sequence[BaseFile], fields: Sequence[pa.Field]) -> _Known:
        listed = pa.table([[getattr(file, name) for file in files] for name in LISTED.names], schema=LISTED)
        paths = list(dict.fromkeys(file.partition_path for file in files))
        wanted = paths if len(paths) <= _MOST_PARTITIONS else None
        known = column_statistics(table, [field.name for field in fields], wanted)
        is_ours = _are_ours(table.data)
        others = frozenset() if is_ours else _instants_of_others(table.data)
        return cls(known, listed, is_ours, pa.array([file.instant_time in others for file in files], pa.bool_()))

    def of_column(self, field: pa.Field) -> _OfColumn:
        found = self.statistics.of_files(field.name, self.files, field.type)
        least, greatest, values, nulls = (
            found.column(name).combine_chunks() for name in ("least", "greatest", "valueCount", "nullCount")
        )
        bounded = pc.fill_null(_in_one_order(least, greatest), False)
        if not self.is_ours and pat.is_floating(field.type):
            bounded = pc.and_(bounded, False)
        elif not self.is_ours and pat.is_string(field.type):
            bounded = pc.and_(bounded, pc.and_(self.by_hudi, pc.fill_null(pc.equal(nulls, 0), False)))
        is_null = pc.and_(pc.fill_null(pc.equal(values, nulls), False), self.is_ours)
        return _OfColumn(least, greatest, bounded, is_null, pc.fill_null(pc.not_equal(nulls, 0), True))


@dataclass(frozen=True, slots=True)
class _OfColumn:
    """Statistics of a column for each file: bounds, which hold every value if `is_bounded`; whether it is null in each row (`is_null`), and
    whether it may be null in one.
    """

    least: pa.Array
    greatest: pa.Array
    is_bounded: pa.Array
    is_null: pa.Array
    may_be_null: pa.Array

    def guarantees(self, field: pa.Field) -> list[list[pc.Expression]]:
        flags = zip(*(np.asarray(one) for one in (self.is_bounded, self.is_null, self.may_be_null)), strict=True)
        return [self._guarantee(field, number, *of_file) for number, of_file in enumerate(flags)]

    def _guarantee(self, field: pa.Field, number: int, is_bounded: bool, is_null: bool, may_be_null: bool) -> list[pc.Expression]:
        if is_null:
            return [pc.field(field.name).is_null()]
        return within(field, self.least[number], self.greatest[number], has_nulls=may_be_null) if is_bounded else [EVERY]


def _are_ours(state: TableState) -> bool:
    """True if this engine made all statistics, as far as the timeline tells: no other program wrote the table, or built an index of it."""
    return not may_be_foreign(state) and not is_built_elsewhere(state)


def _instants_of_others(state: TableState) -> frozenset[str]:
    """Completed writes on the active timeline that another program made. Raises as `TableState.commit_metadata`."""
    writes = state.timeline.completed().writes()
    return frozenset(one.requested_time for one in writes if WRITER_KEY not in state.commit_metadata(one).extra_metadata)


def _in_one_order(least: pa.Array, greatest: pa.Array) -> pa.Array:
    """True if both bounds are there and every reader orders the column's values as the bounds assume."""
    there = pc.and_(least.is_valid(), greatest.is_valid())
    kind = least.type
    if pat.is_date32(kind):
        return pc.and_(there, pc.greater_equal(least, pa.scalar(_FIRST_DAY, kind)))
    if pat.is_timestamp(kind):
        first = datetime(_FIRST_DAY.year, _FIRST_DAY.month, _FIRST_DAY.day, tzinfo=timezone.utc)
        return pc.and_(there, pc.greater_equal(least.cast(pa.int64()), int(first.timestamp()) * 1_000_000))
    if pat.is_string(kind):
        unordered = (pc.match_substring_regex(end, _ORDERED_OTHERWISE) for end in (least, greatest))
        return pc.and_not(there, pc.or_(*unordered))
    return there
