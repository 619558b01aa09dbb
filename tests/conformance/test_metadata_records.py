"""Records that are derived from the files of Hudi's tables are those that Hudi wrote about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import BLOOM, STATS
from lakehouse_engine.metadata_table.answers import all_record_locations
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakehouse_engine.metadata_table.records.columns import indexed_columns
from lakehouse_engine.metadata_table.records.filters import bloom_filter_records
from lakehouse_engine.metadata_table.records.joining import joined
from lakehouse_engine.metadata_table.records.rows import row_locations
from lakehouse_engine.metadata_table.records.statistics import base_file_statistics, log_statistics, partition_statistics
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_metadata_table_fixtures import LOST_KEYS
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture

ROOT = fixtures_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
HUDI = Path("/") if ROOT is None else ROOT / "hudi-spark"
Open = Callable[[str], MetadataTable]


def with_partition(partition: str) -> list[str]:
    names = spark_fixtures(EVERY_VERSION)
    return [name for name in names if f"metadata/{partition}/" in (HUDI / f"{name}.timeline.json").read_text()]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    return lambda name: MetadataTable.open(TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path)))))


def all_slices(data: TableState) -> list[FileSlice]:
    return [piece for path in data.view.partitions() for group in data.view.file_groups(path) for piece in group.slices]


def bases_of(slices: list[FileSlice]) -> list[BaseFile]:
    return [piece.base_file for piece in slices if piece.base_file is not None]


def logs_of(slices: list[FileSlice]) -> list[LogFile]:
    return [log for piece in slices for log in piece.log_files]


def by_key(records: Records, member: str, *left_out: str) -> dict[bytes, dict[str, Any]]:
    """The members of each record; zeros keep their sign."""
    found = zip(records.keys.to_pylist(), records.payloads.column(member).to_pylist(), strict=True)
    return {key: {name: repr(value) for name, value in one.items() if name not in left_out} for key, one in found}


def hudis(table: MetadataTable, partition: str) -> Records:
    return joined(table.records(partition))


@pytest.mark.parametrize("name", with_partition(COLUMN_STATS))
def test_statistics_of_files_are_hudis(name: str, opened: Open) -> None:
    table = opened(name)
    slices = all_slices(table.data)
    ours = joined([base_file_statistics(table.data, bases_of(slices)), log_statistics(table.data, logs_of(slices))])
    # The schema of Hudi 0.15 has no `isTightBound`, which ours says is false.
    left_out = ("isTightBound",) if name.startswith("v6") else ()
    found = by_key(ours, STATS, *left_out)
    assert found == by_key(hudis(table, COLUMN_STATS), STATS, *left_out)
    assert len(found) == (len(bases_of(slices)) + len(logs_of(slices))) * len(indexed_columns(table.data))


@pytest.mark.parametrize("name", with_partition(PARTITION_STATS))
def test_statistics_of_partitions_are_hudis(name: str, opened: Open) -> None:
    table = opened(name)
    found = by_key(partition_statistics(table.data, table.data.view.latest_slices(), joined([])), STATS)
    expected = by_key(hudis(table, PARTITION_STATS), STATS)
    assert found.keys() == expected.keys()
    # Hudi counts what a replace commit took away as well: too wide, never too narrow.
    replaced = {repr(group.partition_path) for group in table.data.view.replaced_as_of()}
    exact = {key for key, one in expected.items() if one["fileName"] not in replaced}
    assert exact
    assert all(found[key] == expected[key] for key in exact)
    assert all(int(found[key]["valueCount"]) <= int(expected[key]["valueCount"]) for key in expected)


@pytest.mark.parametrize("name", with_partition(BLOOM_FILTERS))
def test_filters_are_hudis(name: str, opened: Open) -> None:
    table = opened(name)
    found = by_key(bloom_filter_records(table.data, bases_of(all_slices(table.data))), BLOOM)
    assert found == by_key(hudis(table, BLOOM_FILTERS), BLOOM) != {}


@pytest.mark.parametrize("name", with_partition(RECORD_INDEX))
def test_locations_of_rows_are_hudis(name: str, opened: Open) -> None:
    """But for the keys that Hudi lost, and instants: Hudi keeps that of the insert when it updates a row, ours is that of the slice."""
    table = opened(name)
    ours, expected = (
        {row["key"]: row for row in pa.concat_tables(found).to_pylist()}
        for found in (row_locations(table.data, table.data.view.latest_slices()), all_record_locations(table))
    )
    assert ours.keys() - expected.keys() == LOST_KEYS.get(name, set())
    writes = table.data.timeline.completed().writes()
    written = {round(parse_instant_time(one.requested_time).timestamp() * 1000) for one in writes}  # their zone was UTC
    assert {row["instant_millis"] for row in ours.values()} <= written
    for key, row in expected.items():
        assert {**ours[key], "instant_millis": 0} == {**row, "instant_millis": 0}
        assert ours[key]["instant_millis"] >= row["instant_millis"]
