"""Rules out files by the column statistics of the metadata table, so that not even their footers are opened.

It does not trust a metadata table that lacks a completed instant, nor bounds that readers may order differently than Hudi: days and
timestamps before the Gregorian calendar, and texts with characters that Java orders by their surrogates.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.metadata_table.answers import LISTED, Statistics, column_statistics
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS
from lakehouse_engine.metadata_table.table import MetadataTable, is_in_use
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.row_filter import Guaranteed, RowFilter
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.statistics import EVERY, together, within
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

WORTH_ASKING = 8
"""Fewest files: below that, opening footers takes no longer than opening the metadata table."""
_MOST_PARTITIONS = 64
"""With more partitions, statistics of all of them are read at once."""
_FIRST_DAY = date(1582, 10, 15)
_ORDERED_OTHERWISE = "[\\x{E000}-\\x{10FFFF}]"


def without_ruled_out_by_index(state: TableState, plan: ScanPlan) -> ScanPlan:
    """A plan of some rows, reduced by the files without logs that have none of these rows by their recorded statistics.

    If the metadata table cannot be read, or lags, the plan is unchanged: the footers decide.
    """
    wanted = plan.wanted
    if wanted is None or wanted.rounds or len(plan.files) < WORTH_ASKING:
        return plan
    if not is_in_use(state) or COLUMN_STATS not in state.config.metadata_partitions:
        return plan
    try:
        table = MetadataTable.open(state)
        behind = unknown_instants(table)
        if behind:
            logger.warning("the metadata table of %s is not used: it does not know of %s", state.config.name, behind[0])
            return plan
        return replace(plan, files=_that_may_match(table, plan.files, wanted))
    except LakehouseError as error:
        logger.warning("the metadata table of %s is not used, for it cannot be read: %s", state.config.name, error)
        return plan


def _that_may_match(table: MetadataTable, files: Sequence[BaseFile], wanted: RowFilter) -> tuple[BaseFile, ...]:
    fields = [wanted.schema.field(name) for name in wanted.columns if _is_ordered(wanted.schema.field(name).type)]
    if not fields:
        return tuple(files)
    listed = pa.table([[getattr(file, name) for file in files] for name in LISTED.names], schema=LISTED)
    paths = list(dict.fromkeys(file.partition_path for file in files))
    known = column_statistics(table, [field.name for field in fields], paths if len(paths) <= _MOST_PARTITIONS else None)
    columns = [_guaranteed(known, field, listed) for field in fields]
    guarantees = [together(column[number] for column in columns) for number in range(len(files))]
    owners = [number for number, alternatives in enumerate(guarantees) for _ in alternatives]
    may = wanted.may_hold_in(Guaranteed.of([one for alternatives in guarantees for one in alternatives], wanted.schema))
    chosen = {owner for owner, holds in zip(owners, may, strict=True) if holds}
    return tuple(file for number, file in enumerate(files) if number in chosen)


def _is_ordered(kind: pa.DataType) -> bool:
    ordered = (pat.is_signed_integer, pat.is_floating, pat.is_decimal, pat.is_date32, pat.is_timestamp, pat.is_string)
    return any(member(kind) for member in ordered)


def _guaranteed(known: Statistics, field: pa.Field, files: pa.Table) -> list[list[pc.Expression]]:
    """For each file: alternatives for the values of a column, of which its statistics guarantee one."""
    found = known.of_files(field.name, files, field.type)
    least, greatest = (found.column(end).combine_chunks() for end in ("least", "greatest"))
    trusted = pc.fill_null(_trusted(least, greatest), False).to_pylist()
    counts = zip(found.column("valueCount").to_pylist(), found.column("nullCount").to_pylist(), strict=True)
    guaranteed: list[list[pc.Expression]] = []
    for number, (values, nulls) in enumerate(counts):
        if values is not None and nulls == values:
            guaranteed.append([pc.field(field.name).is_null()])
        elif trusted[number]:
            guaranteed.append(within(field, least[number], greatest[number], has_nulls=nulls != 0))
        else:
            guaranteed.append([EVERY])
    return guaranteed


def _trusted(least: pa.Array, greatest: pa.Array) -> pa.Array:
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
