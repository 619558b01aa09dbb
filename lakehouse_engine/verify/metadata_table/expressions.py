"""Compares expression indexes with the rows of the newest file slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.metadata_table.answers import LISTED, Statistics, bloom_filters
from lakehouse_engine.metadata_table.expressions.bounded import Bounded
from lakehouse_engine.metadata_table.expressions.index import ExpressionIndex
from lakehouse_engine.metadata_table.expressions.records import File, bounded_values
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.verify.metadata_table.files import finding
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind
from lakehouse_engine.verify.metadata_table.statistics import is_less, narrower, statistics_of


def check_expression(table: MetadataTable, index: ExpressionIndex) -> tuple[int, list[MetadataFinding]]:
    """Number of compared records of files, and findings for those that rule out a row that the file has. Reads the column of all rows.

    A file without a record is ruled out by no reader, so that none is missed.
    """
    files = _latest_files(table)
    listed = pa.Table.from_pylist([{"partition_path": file.partition_path, "name": file.name, "size": file.size} for file in files], LISTED)
    if index.shape is not None:
        return _check_filters(table, index, files, bloom_filters(table, listed, index.partition))
    whole = statistics_of(table, index.partition)
    known = whole.of_files(index.source.name, listed, index.expression.kind)
    count = 0
    found: list[MetadataFinding] = []
    for number, file in enumerate(files):
        if known.column("valueCount")[number].is_valid:
            count += 1
            found += _wrong_bounds(table, index, file, known.slice(number, 1))
    return count, [*found, *_wrong_partitions(index, whole, listed, known)]


def _latest_files(table: MetadataTable) -> list[File]:
    slices = table.data.view.latest_slices()
    logs = (log for piece in slices for log in piece.log_files if not log.is_cdc)
    return [*(piece.base_file for piece in slices if piece.base_file is not None), *logs]


def _wrong_bounds(table: MetadataTable, index: ExpressionIndex, file: File, known: pa.Table) -> Iterator[MetadataFinding]:
    """A finding if a row of the file has a value beyond the bounds, whatever it is between its own."""
    least, greatest = (known.column(end)[0] for end in ("least", "greatest"))
    for rows in bounded_values(table.data, index, file):
        lowest, highest = pc.min(rows.greatest), pc.max(rows.least)
        if is_less(lowest, least) or is_less(greatest, highest):
            message = f"the expression on {index.source.name} has values from {lowest} to {highest}; {least} to {greatest} are recorded"
            yield finding(MetadataFindingKind.WRONG_STATISTICS, file.path, message, index.partition)
            return


def _wrong_partitions(index: ExpressionIndex, whole: Statistics, listed: pa.Table, known: pa.Table) -> Iterator[MetadataFinding]:
    """Findings for statistics of partitions that do not hold those of their files."""
    paths = listed.column("partition_path")
    for path in pc.unique(paths).to_pylist():
        found = whole.of_partitions_by_expression(index.source.name, pa.array([path], pa.string()), index.expression.kind)
        if found.column("valueCount")[0].is_valid:
            yield from narrower(path, index.source.name, found, known.filter(pc.equal(paths, path)), index.partition)


def _check_filters(
    table: MetadataTable, index: ExpressionIndex, files: Sequence[File], filters: Sequence[BloomFilter | None]
) -> tuple[int, list[MetadataFinding]]:
    found = []
    for file, known in zip(files, filters, strict=True):
        if known is not None and not all(_holds(known, rows) for rows in bounded_values(table.data, index, file)):
            message = f"its Bloom filter misses values of the expression on {index.source.name} that the file has"
            found.append(finding(MetadataFindingKind.WRONG_BLOOM_FILTER, file.path, message, index.partition))
    return sum(known is not None for known in filters), found


def _holds(known: BloomFilter, rows: Bounded) -> bool:
    """True if a filter has all values that are certain."""
    certain = rows.least if rows.is_exact else rows.least.filter(pc.equal(rows.least, rows.greatest))
    return bool(known.might_contain(pc.unique(certain.drop_null()).cast(pa.string())).all())
