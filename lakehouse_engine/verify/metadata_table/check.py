"""Runs the checks of a metadata table one after the other; each runs whatever the others find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Literal

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.index import kept_expressions
from lakehouse_engine.metadata_table.partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from lakehouse_engine.metadata_table.records.pairs import indexed_column
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.verify.metadata_table.expressions import check_expression
from lakehouse_engine.verify.metadata_table.files import check_files, check_filters
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind, MetadataReport
from lakehouse_engine.verify.metadata_table.rows import check_record_index
from lakehouse_engine.verify.metadata_table.secondary import check_secondary_index
from lakehouse_engine.verify.metadata_table.statistics import check_partition_statistics, check_statistics
from lakehouse_engine.view.table_state import TableState

Checked = tuple[int, list[MetadataFinding]]
Check = tuple[Literal["files", "statistics", "filters", "keys"], Callable[[], Checked]]
"""What is compared, and how many of it with what findings."""


def check_metadata_table(state: TableState, *, quick: bool = False) -> MetadataReport:
    """Compare the metadata table with directories, footers and, unless `quick`, rows. Differences become findings.

    Raises `UnavailableError` if the table has no metadata table, `TableNotFoundError` if it is named but gone.
    """
    table = MetadataTable.open(state)
    _, findings = _settled(FILES, lambda: (0, [_unknown(one) for one in unknown_instants(table)]))
    counts: Counter[str] = Counter()
    for partition, (counted, check) in _checks(table, quick=quick).items():
        count, found = _settled(partition, check)
        counts[counted] += count
        findings += found
    newest = state.timeline.completed().writes().last()
    return MetadataReport(
        table=state.config.name,
        instant=None if newest is None else newest.requested_time,
        partitions=table.partitions,
        findings=tuple(findings),
        skipped=tuple(_skipped(table, quick=quick)),
        **counts,
    )


def _unknown(instant: Instant) -> MetadataFinding:
    message = f"{instant} is not in the metadata table: readers that go by it do not see what that did"
    return MetadataFinding(MetadataFindingKind.UNKNOWN_INSTANT, FILES, "", message)


def _checks(table: MetadataTable, *, quick: bool) -> dict[str, Check]:
    """Checks by partition of the metadata table."""
    checks: dict[str, Check] = {FILES: ("files", lambda: check_files(table))}
    if COLUMN_STATS in table.partitions:
        checks[COLUMN_STATS] = ("statistics", lambda: check_statistics(table, table_schema(table.data)))
    if PARTITION_STATS in table.partitions:
        checks[PARTITION_STATS] = ("statistics", lambda: check_partition_statistics(table, table_schema(table.data)))
    if BLOOM_FILTERS in table.partitions:
        checks[BLOOM_FILTERS] = ("filters", lambda: check_filters(table))
    return checks if quick else {**checks, **_checks_of_rows(table)}


def _checks_of_rows(table: MetadataTable) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    if RECORD_INDEX in table.partitions:
        checks[RECORD_INDEX] = ("keys", lambda: check_record_index(table))
    defined = stored_definitions(table.data)
    for name in table.partitions:
        column = indexed_column(table.data, defined[name]) if name.startswith(SECONDARY_INDEX) and name in defined else None
        if column is not None:
            checks[name] = ("keys", partial(check_secondary_index, table, name, column))
    for name, index in kept_expressions(table.data, table.partitions).items():
        checks[name] = ("statistics" if index.shape is None else "filters", partial(check_expression, table, index))
    return checks


def _settled(partition: str, check: Callable[[], Checked]) -> Checked:
    """Result of a check; an error while reading becomes a finding."""
    try:
        return check()
    except LakehouseError as error:
        return 0, [MetadataFinding(MetadataFindingKind.UNREADABLE, partition, error.context.get("path", ""), error.message)]


def _skipped(table: MetadataTable, *, quick: bool) -> list[str]:
    compared, whole = (set(_checks(table, quick=one)) for one in (quick, False))
    why = {True: "rows are not read by a quick check", False: "this engine does not know how to compute it"}
    return [f"{partition}: {why[partition in whole]}" for partition in table.partitions if partition not in compared]
