"""Runs the checks of a metadata table one after the other; each runs whatever the others find."""

from __future__ import annotations

from collections.abc import Callable

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.verify.metadata_table.files import check_files, check_filters
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind, MetadataReport
from lakehouse_engine.verify.metadata_table.rows import check_record_index
from lakehouse_engine.verify.metadata_table.statistics import check_partition_statistics, check_statistics
from lakehouse_engine.view.table_state import TableState

Checked = tuple[int, list[MetadataFinding]]


def check_metadata_table(state: TableState, *, quick: bool = False) -> MetadataReport:
    """Compare the metadata table with directories, footers and, unless `quick`, rows. Differences become findings.

    Raises `UnavailableError` if the table has no metadata table, `TableNotFoundError` if it is named but gone.
    """
    table = MetadataTable.open(state)
    _, findings = _settled(FILES, lambda: (0, [_unknown(one) for one in unknown_instants(table)]))
    counts = dict.fromkeys((FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX), 0)
    for partition, check in _checks(table, quick=quick).items():
        counts[partition], found = _settled(partition, check)
        findings += found
    newest = state.timeline.completed().writes().last()
    return MetadataReport(
        table=state.config.name,
        instant=None if newest is None else newest.requested_time,
        partitions=table.partitions,
        files=counts[FILES],
        statistics=counts[COLUMN_STATS] + counts[PARTITION_STATS],
        filters=counts[BLOOM_FILTERS],
        keys=counts[RECORD_INDEX],
        findings=tuple(findings),
        skipped=tuple(_skipped(table, quick=quick)),
    )


def _unknown(instant: Instant) -> MetadataFinding:
    message = f"{instant} is not in the metadata table: readers that go by it do not see what that did"
    return MetadataFinding(MetadataFindingKind.UNKNOWN_INSTANT, FILES, "", message)


def _checks(table: MetadataTable, *, quick: bool) -> dict[str, Callable[[], Checked]]:
    checks: dict[str, Callable[[], Checked]] = {FILES: lambda: check_files(table)}
    if COLUMN_STATS in table.partitions:
        checks[COLUMN_STATS] = lambda: check_statistics(table, table_schema(table.data))
    if PARTITION_STATS in table.partitions:
        checks[PARTITION_STATS] = lambda: check_partition_statistics(table, table_schema(table.data))
    if BLOOM_FILTERS in table.partitions:
        checks[BLOOM_FILTERS] = lambda: check_filters(table)
    if RECORD_INDEX in table.partitions and not quick:
        checks[RECORD_INDEX] = lambda: check_record_index(table)
    return checks


def _settled(partition: str, check: Callable[[], Checked]) -> Checked:
    """Result of a check; an error while reading becomes a finding."""
    try:
        return check()
    except LakehouseError as error:
        return 0, [MetadataFinding(MetadataFindingKind.UNREADABLE, partition, error.context.get("path", ""), error.message)]


def _skipped(table: MetadataTable, *, quick: bool) -> list[str]:
    compared = set(_checks(table, quick=quick))
    return [_not_compared(partition) for partition in table.partitions if partition not in compared]


def _not_compared(partition: str) -> str:
    why = "rows are not read by a quick check" if partition == RECORD_INDEX else "indexes of this kind are not compared"
    return f"{partition}: {why}"
