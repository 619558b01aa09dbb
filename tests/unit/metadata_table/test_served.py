"""A metadata table that this engine builds, keeps up and serves, over many writes: after each, `metadata check` finds nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version

__all__ = ["pytest_generate_tests", "table_version"]

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
PARTITIONS = ["files", "column_stats", "bloom_filters", "record_index"]
FEW = {
    "hoodie.metadata.compact.max.delta.commits": 3,
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 6,
}


def rows(*numbers: int, value: int) -> pa.Table:
    return pa.table([[f"k{number}" for number in numbers], [f"p{number % 2}" for number in numbers], [value] * len(numbers)], schema=SCHEMA)


def checked(storage: MemoryStorage) -> MetadataTable:
    state = TableState.load(storage)
    report = check_metadata_table(state)
    assert report.findings == ()
    assert report.files
    return MetadataTable.open(state)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_it_stays_right_and_short(table_version: TableVersion, table_type: str) -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["v"], ["part"], table_type, version=table_version))
    table = HoodieTable(storage, options={**FEW, "hoodie.compact.inline": "true"})
    table.insert(rows(*range(6), value=0))
    table.rebuild_metadata(PARTITIONS)
    checked(storage)
    for number in range(1, 16):
        if number == 8:
            table.rebuild_metadata(["record_index"])
        if number % 5 == 0:
            assert table.delete(rows(number, value=0).select(["id", "part"])).failed_services == ()
        else:
            assert table.upsert(rows(number, number + 1, 100 + number, value=number)).failed_services == ()
        metadata = checked(storage)
    done = [instant.action for instant in metadata.state.timeline.completed()]
    assert done.count(Action.COMMIT) >= 2
    assert Action.CLEAN in done
    assert metadata.state.has_archive
    assert TableState.load(storage).has_archive
    assert len(done) < 40
