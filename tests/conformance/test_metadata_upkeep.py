"""Metadata tables that Hudi made go on with our writes: after each action `metadata check` finds nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.errors import StorageError
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_metadata_check import TABLES as CHECKED
from tests.support.fixtures import fixtures_root, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

TABLES = [name for name in CHECKED if "schema_on_read" not in name]
"""Tables with a history of their schema are refused."""
LOST_BY_HUDI = {"v6-0.15.0/mor_metadata", "v6-1.2.0/mor_metadata", "v8-1.2.0/mor_metadata", "v9-1.2.0/mor_metadata"}
"""Hudi's record index lacks the key `k0006` there (see test_metadata_table_fixtures)."""


@pytest.fixture(autouse=True)
def _later_than_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are newer than the clock of some machines."""
    monkeypatch.setattr(clock, "_TOLERANCE", clock.timedelta(days=100_000))


class Kept:
    """A table of Hudi's with its metadata table, checked after each action."""

    def __init__(self, name: str, folder: Path, **options: object) -> None:
        self.name, self.path = name, unpack_spark_fixture(name, folder)
        self.table = HoodieTable.open(str(self.path), options=options)
        self.partitions = self.table.config.metadata_partitions
        self.key = self.table.config.record_key_fields[0]
        self.check()

    @property
    def state(self) -> TableState:
        return TableState.load(LocalStorage(str(self.path)))

    def check(self) -> None:
        state = self.state
        assert state.config.metadata_partitions == self.partitions
        assert unknown_instants(MetadataTable.open(state)) == []
        report = check_metadata_table(state)
        known = [one for one in report.findings if self.name in LOST_BY_HUDI and "'k0006'" in one.message]
        assert [one for one in report.findings if one not in known] == []
        assert report.files > 0

    def rows(self) -> pa.Table:
        return self.table.to_arrow()

    def fresh(self, count: int, prefix: str) -> pa.Table:
        """Rows with new keys."""
        rows = self.rows().slice(0, count)
        kind = rows.schema.field(self.key).type
        keys = [f"{prefix}{number}" if pa.types.is_string(kind) else hash(prefix) % 10_000_000 + number for number in range(rows.num_rows)]
        return rows.set_column(rows.column_names.index(self.key), rows.schema.field(self.key), pa.array(keys, kind))

    def delete(self, rows: pa.Table) -> None:
        config = self.table.config
        names = list(dict.fromkeys([*config.record_key_fields, *config.partition_fields]))
        self.table.delete(rows.select(names))


@pytest.mark.parametrize("name", TABLES)
def test_writes_are_followed(name: str, tmp_path: Path) -> None:
    one = Kept(name, tmp_path)
    one.table.upsert(one.rows().slice(0, 3))
    one.check()
    one.table.upsert(pa.concat_tables([one.rows().slice(1, 2), one.fresh(4, "a")]))
    one.check()
    one.table.insert(one.fresh(5, "b"))
    one.check()
    one.delete(one.rows().slice(2, 3))
    one.check()
    one.table.bulk_insert(one.fresh(3, "c"))
    one.check()
    one.table.insert_overwrite(one.fresh(2, "d"))
    one.check()
    one.delete(one.fresh(2, "no such key"))
    one.check()


@pytest.mark.parametrize("name", TABLES)
def test_services_are_followed(name: str, tmp_path: Path) -> None:
    one = Kept(name, tmp_path)
    one.table.upsert(pa.concat_tables([one.rows().slice(0, 3), one.fresh(3, "a")]))
    if one.table.config.table_type is TableType.MERGE_ON_READ:
        one.table.compact()
        one.check()
    one.table.savepoint(name="here")
    one.check()
    one.table.cluster()
    one.check()
    one.table.upsert(one.rows().slice(0, 5))
    one.table.clean(retain_commits=1)
    one.check()
    one.table.archive()
    one.check()


@pytest.mark.parametrize("name", TABLES)
def test_what_is_taken_back_is_forgotten(name: str, tmp_path: Path) -> None:
    # What a compaction of the metadata table has merged cannot be taken back alone.
    one = Kept(name, tmp_path, **{"hoodie.metadata.compact.max.delta.commits": 100})
    before = one.rows()
    result = one.table.upsert(pa.concat_tables([before.slice(0, 3), one.fresh(3, "a")]))
    one.table.rollback(result.instant)
    one.check()
    assert_same_rows(one.rows(), before)
    one.table.savepoint(name="here")
    one.table.upsert(one.fresh(3, "b"))
    one.delete(before.slice(0, 2))
    one.table.restore("here")
    one.check()
    assert_same_rows(one.rows(), before)
    one.table.upsert(one.fresh(2, "c"))
    one.check()


@pytest.mark.parametrize("name", [name for name in TABLES if "nonpartitioned" not in name])
def test_a_deleted_partition_is_followed(name: str, tmp_path: Path) -> None:
    one = Kept(name, tmp_path)
    path = one.state.live_partitions()[0]
    if path:
        one.table.delete_partitions([path])
        one.check()
        one.table.insert(one.fresh(2, "a"))
        one.check()
    assert pc.count(one.rows().column(0)).as_py() > 0


def test_a_damaged_metadata_table_ends_and_the_write_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Statistics of partitions are made of those of files."""
    one = Kept("v9-1.2.0/cow_metadata", tmp_path)
    rows = one.rows()
    for damaged in (one.path / ".hoodie" / "metadata" / "column_stats").glob("*.hfile"):
        damaged.write_bytes(b"no HFile")
    one.table.upsert(one.fresh(2, "a"))
    assert one.rows().num_rows == rows.num_rows + 2
    assert one.state.config.metadata_partitions == ()
    assert not (one.path / ".hoodie" / "metadata").exists()
    told = [record.message for record in caplog.records if "the metadata table of" in record.message]
    assert len(told) == 1
    assert "metadata rebuild" in told[0]


def test_a_store_that_does_not_answer_costs_no_metadata_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Kept(TABLES[0], tmp_path)

    def silent(state: TableState) -> MetadataTable:
        raise StorageError("the store does not answer")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(MetadataTable, "open", silent)
        with pytest.raises(StorageError, match="does not answer"):
            one.table.upsert(one.rows().slice(0, 1))
    one.check()
    one.table.upsert(one.rows().slice(0, 1))
    one.check()
