"""Compares column statistics with footers, and partition statistics with those of their files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_engine.files.column_bounds import columns_bounds
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.metadata_table.answers import Statistics
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS, PARTITION_STATS
from lakehouse_engine.metadata_table.records.columns import indexed_columns
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.verify.metadata_table.files import finding, latest_base_files, latest_files, parsed
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind


def check_statistics(table: MetadataTable, schema: pa.Schema) -> tuple[int, list[MetadataFinding]]:
    """Number of compared column statistics, and findings for those that are narrower than their file's footer, or have other counts."""
    files = latest_base_files(table)
    bases = list(parsed(files))
    whole = statistics_of(table, COLUMN_STATS)
    count = 0
    found: list[MetadataFinding] = []
    for field in schema:
        if pa.types.is_nested(field.type):
            continue
        known = whole.of_files(field.name, files, field.type)
        there = known.column("valueCount").is_valid().to_pylist()
        for number, file in enumerate(bases):
            if there[number]:
                count += 1
                found += _wrong(file, field, known.slice(number, 1), FOOTERS.read(table.data.storage, file))
    return count, found


def _wrong(file: BaseFile, field: pa.Field, known: pa.Table, footer: pq.FileMetaData) -> Iterator[MetadataFinding]:
    (stored,) = columns_bounds(footer, [field], file.path)
    if stored.nulls is None:
        return
    row = known.slice(0, 1)
    values, nulls = row.column("valueCount")[0].as_py(), row.column("nullCount")[0].as_py()
    if (values, nulls) != (stored.values, stored.nulls):
        message = f"the column {field.name} has {stored.values} values, {stored.nulls} null; {values} and {nulls} are recorded"
        yield finding(MetadataFindingKind.WRONG_STATISTICS, file.path, message, COLUMN_STATS)
    least, greatest = (row.column(end)[0] for end in ("least", "greatest"))
    if stored.nulls == stored.values or stored.least is None or stored.greatest is None:
        return
    if is_less(stored.least, least) or is_less(greatest, stored.greatest):
        message = f"the column {field.name} has values from {stored.least} to {stored.greatest}; {least} to {greatest} are recorded"
        yield finding(MetadataFindingKind.WRONG_STATISTICS, file.path, message, COLUMN_STATS)


def is_less(one: pa.Scalar, other: pa.Scalar) -> bool:
    """True if a value is less than another; False if either is unknown."""
    return bool(pc.less(one, other).as_py())


def check_partition_statistics(table: MetadataTable, schema: pa.Schema) -> tuple[int, list[MetadataFinding]]:
    """Number of compared partition statistics, and findings for those narrower than those of the partition's newest files, or not there.

    Hudi 1.2 takes a partition without statistics for one without rows.
    """
    indexed = set(indexed_columns(table.data))
    of_files, of_partitions = statistics_of(table, COLUMN_STATS), statistics_of(table, PARTITION_STATS)
    count = 0
    found: list[MetadataFinding] = []
    for path in table.data.view.partitions():
        files = latest_files(table.data, path)
        for field in schema:
            if pa.types.is_nested(field.type) or not files.num_rows:
                continue
            whole = of_partitions.of_partitions(field.name, pa.array([path], pa.string()), field.type)
            if whole.column("valueCount")[0].is_valid:
                count += 1
                found += narrower(path, field.name, whole, of_files.of_files(field.name, files, field.type), PARTITION_STATS)
            elif field.name in indexed:
                message = f"the column {field.name} has no statistics, and the partition has files"
                found.append(finding(MetadataFindingKind.WRONG_STATISTICS, path, message, PARTITION_STATS))
    return count, found


def narrower(path: str, column: str, whole: pa.Table, parts: pa.Table, partition: str) -> Iterator[MetadataFinding]:
    """A finding about `partition` of the metadata table if the one row of `whole` does not hold the bounds of all `parts`."""
    least, greatest = pc.min(parts.column("least")), pc.max(parts.column("greatest"))
    known = [whole.column(end)[0] for end in ("least", "greatest")]
    if is_less(least, known[0]) or is_less(known[1], greatest):
        message = f"files have values of the column {column} from {least} to {greatest}; {known[0]} to {known[1]} are recorded"
        yield finding(MetadataFindingKind.WRONG_STATISTICS, path, message, partition)


def statistics_of(table: MetadataTable, partition: str) -> Statistics:
    """All statistics of a partition of the metadata table."""
    return Statistics.of(table.with_prefixes(partition, [b""]))
