from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import LockError, OptionError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.alter import set_properties
from tests.unit.timeline.locks.tables import BESIDE_HUDI, PROVIDER

MODE, NAMED = BESIDE_HUDI
ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})


def _table(tmp_path: Path, properties: dict[str, Any] | None = None, **options: Any) -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"), **options)
    return lake.create_table("s.t", schema=ROWS.schema, record_key=["id"], properties=properties or {})


def _kept(table: HoodieTable) -> dict[str, str]:
    stored = ConfigStore(table.storage).read().prefixed("lakehouse.default.")
    return {key: value for key, value in stored.items() if key in BESIDE_HUDI}


def test_what_one_write_says_about_the_lock_the_table_keeps_for_all_writers(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.upsert(ROWS, options=BESIDE_HUDI)
    assert _kept(table) == BESIDE_HUDI
    HoodieTable.open(table.path).upsert(ROWS)
    table.upsert(ROWS, options={MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"})
    assert _kept(table) == BESIDE_HUDI
    assert table.to_arrow().num_rows == 2


def test_a_table_is_created_with_its_lock(tmp_path: Path) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    assert _kept(table) == BESIDE_HUDI
    assert table.upsert(ROWS).inserts == 2


def test_a_dry_run_keeps_nothing(tmp_path: Path) -> None:
    table = _table(tmp_path)
    HoodieTable.open(table.path, options=BESIDE_HUDI).clean(dry_run=True)
    assert _kept(table) == {}
    HoodieTable.open(table.path, options=BESIDE_HUDI).clean()
    assert _kept(table) == BESIDE_HUDI


def test_a_write_that_asks_for_another_lock_than_the_tables_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    with pytest.raises(LockError, match=r"hoodie.write.lock.filesystem.path|hoodie.write.lock.provider=flock.*keeps.*FileSystemBased"):
        table.upsert(ROWS, options={NAMED: "flock", MODE: "single_writer"})
    assert table.timeline.completed().writes().last() is None


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({MODE: "optimistic_concurrency_control"}, LockError, "ZooKeeper.*FileSystemBasedLockProvider"),
        ({NAMED: "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"}, LockError, "Zookeeper.*FileSystemBased"),
        ({NAMED: "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"}, LockError, "HiveMetastore.*FileSystemBased"),
        ({NAMED: "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"}, LockError, "DynamoDB.*FileSystemBased"),
        ({NAMED: "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"}, LockError, "StorageBased.*FileSystemBased"),
        ({MODE: "optimistic_concurrency_control", NAMED: "InProcessLockProvider"}, LockError, "InProcess.*another process"),
        ({**BESIDE_HUDI, "hoodie.cleaner.policy.failed.writes": "EAGER"}, OptionError, "LAZY"),
        ({MODE: "non_blocking_concurrency_control"}, OptionError, "SINGLE_WRITER"),
    ],
)
def test_what_keeps_nobody_out_is_refused_by_name_before_anything_is_changed(
    tmp_path: Path, options: dict[str, str], error: type[Exception], said: str
) -> None:
    table = _table(tmp_path)
    before = ConfigStore(table.storage).read().properties
    with pytest.raises(error, match=said):
        table.upsert(ROWS, options=options)
    with pytest.raises(error, match=said):
        Lakehouse(str(tmp_path / "w")).create_table("s.other", schema=ROWS.schema, record_key=["id"], properties=options)
    assert ConfigStore(table.storage).read().properties == before
    assert table.timeline.completed().writes().last() is None


def test_properties_under_hudis_own_names_count_and_may_not_contradict(tmp_path: Path) -> None:
    table = _table(tmp_path)
    ConfigStore(table.storage).update(BESIDE_HUDI)
    table.upsert(ROWS, options=BESIDE_HUDI)
    assert _kept(table) == {}
    ConfigStore(table.storage).update({f"lakehouse.default.{NAMED}": "flock"})
    with pytest.raises(LockError, match="remove one of the two"):
        table.upsert(ROWS)


def test_the_lock_is_changed_for_all_writers_also_from_one_that_cannot_be_taken(tmp_path: Path) -> None:
    table = _table(tmp_path)
    ConfigStore(table.storage).update({f"lakehouse.default.{NAMED}": "ZookeeperBasedLockProvider"})
    with pytest.raises(LockError):
        table.upsert(ROWS)
    with pytest.raises(LockError):
        set_properties(table.storage, {NAMED: "Another"}, lock_timeout_ms=1000)
    set_properties(table.storage, {NAMED: PROVIDER}, lock_timeout_ms=1000)
    assert table.upsert(ROWS).inserts == 2


def test_a_table_beside_hudi_is_renamed_and_dropped_without_leaving_its_lock(tmp_path: Path) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    table.upsert(ROWS)
    lake = Lakehouse(str(tmp_path / "w"))
    lake.rename_table("s.t", "s.u")
    renamed = lake.table("s.u")
    assert renamed.storage.head(".hoodie/lock") is None
    assert renamed.upsert(ROWS).updates == 2
    lake.drop_table("s.u")
    assert lake.tables() == []


def test_times_of_the_lock_are_read_with_hudis_defaults() -> None:
    assert LockOptions.read({}).tolerated_ms == 120_000
    slower = {"hoodie.client.heartbeat.interval_in_ms": 1000, "hoodie.client.heartbeat.tolerable.misses": 5}
    assert LockOptions.read(slower).tolerated_ms == 5000
