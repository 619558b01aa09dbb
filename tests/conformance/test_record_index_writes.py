"""Whole writes by the record index of metadata tables that Hudi made: the same rows as by a look through all files."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import DuplicateKeyError, RecordIndexError
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.metadata_table.upkeep import changes
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.verify.metadata_table import check_metadata_table
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

BY_INDEX, BY_FILES = {"hoodie.index.type": "RECORD_INDEX"}, {"hoodie.index.type": "GLOBAL_SIMPLE"}
INDEXED = [name for name in spark_fixtures(EVERY_VERSION) if name.endswith(("_metadata", "_metadata_nonpartitioned"))]
COW = [name for name in INDEXED if "/cow" in name]


@pytest.fixture(autouse=True)
def _later_than_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are newer than the clock of some machines."""
    monkeypatch.setattr(clock, "_TOLERANCE", clock.timedelta(days=100_000))


def opened(name: str, folder: Path) -> HoodieTable:
    return HoodieTable.open(str(unpack_spark_fixture(name, folder)))


def rows(table: HoodieTable) -> pa.Table:
    return table.to_arrow().sort_by("id")


def new_rows(stored: pa.Table, prefix: str) -> pa.Table:
    keys = pa.array([f"{prefix}{number}" for number in range(stored.num_rows)])
    return stored.set_column(stored.column_names.index("id"), "id", keys)


def moved(stored: pa.Table) -> pa.Table:
    """The rows with the partitions of the others."""
    part = stored.column("part").combine_chunks()
    return stored.set_column(stored.column_names.index("part"), "part", pa.concat_arrays([part[1:], part[:1]]))


def steps(table: HoodieTable, options: dict[str, str]) -> None:
    """New rows, updates, moves, deletions, and rows that come back."""
    stored = rows(table)
    mixed = pa.concat_tables([stored.slice(0, 4), new_rows(stored.slice(0, 3), "n")])
    for act in (
        lambda: table.upsert(mixed, options=options),
        lambda: table.upsert(moved(stored.slice(0, 5)), options=options),
        lambda: table.delete(stored.slice(1, 3).select(["id"]), options=options),
        lambda: table.upsert(stored.slice(1, 2), options=options),
        lambda: table.upsert(rows(table), options=options),
    ):
        act()


@pytest.mark.parametrize("name", INDEXED)
def test_writes_by_the_index_have_the_rows_of_writes_by_all_files(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    by_index, by_files = opened(name, tmp_path / "index"), opened(name, tmp_path / "files")
    steps(by_files, BY_FILES)
    with caplog.at_level(logging.WARNING):
        steps(by_index, BY_INDEX)
    assert_same_rows(rows(by_index), rows(by_files))
    assert len(set(rows(by_index).column("id").to_pylist())) == rows(by_index).num_rows
    assert ("is not asked" in caplog.text) is ("/mor" in name)


@pytest.mark.parametrize("name", COW)
def test_no_write_compares_keys_with_all_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise AssertionError("all files were asked")

    monkeypatch.setattr(KeyColumnIndex, "tag", refused)
    table = opened(name, tmp_path)
    steps(table, BY_INDEX)
    assert "record_index" in table.config.metadata_partitions
    assert check_metadata_table(table.state).findings == ()


@pytest.mark.parametrize("name", COW)
def test_a_wrong_entry_fails_the_write_and_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(name, tmp_path)
    stored = rows(table)
    monkeypatch.setattr(changes, "location_changes", lambda *given, **more: [])
    table.delete(stored.slice(0, 1).select(["id", *table.config.partition_fields]), options=BY_FILES)
    monkeypatch.undo()
    monkeypatch.setattr(clock, "_TOLERANCE", clock.timedelta(days=100_000))
    before = rows(table)
    with pytest.raises(RecordIndexError, match="no row or deletion of that key"):
        table.upsert(stored.slice(0, 2), options=BY_INDEX)
    assert_same_rows(rows(HoodieTable.open(table.path)), before)
    table.upsert(stored.slice(0, 2), options=BY_FILES)
    assert rows(table).num_rows == stored.num_rows


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_an_insert_of_a_stored_key_is_refused(name: str, operation: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    stored = rows(table)
    write = getattr(table, operation)
    fresh = new_rows(stored.slice(0, 2), "n")
    for given, why in (
        (pa.concat_tables([fresh, moved(stored.slice(0, 2))]), "and that is stored in the partition"),
        (pa.concat_tables([fresh, fresh]), "is a key that the write brings twice"),
    ):
        with pytest.raises(DuplicateKeyError, match=why):
            write(given)
        assert_same_rows(rows(HoodieTable.open(table.path)), stored)
    write(fresh)
    assert rows(table).num_rows == stored.num_rows + 2
    table.insert_overwrite(stored)
    assert_same_rows(rows(HoodieTable.open(table.path)), stored)
