"""A table in a second place of the warehouse: what it shares, and what it does not."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.atomic_create import make_filled
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import ChangedSinceReadError, LockTimeoutError, StoredFileExistsError
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import assert_same_rows, read_with_hudi_rs

HELD = ".lakehouse/held"
SCHEMA = pa.schema([("id", pa.int32()), ("day", pa.string()), ("n", pa.int64())])


def rows(*ids: int, n: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [str(one % 2) for one in ids], "n": [n] * len(ids)}, schema=SCHEMA)


@pytest.fixture(params=["cow", "mor"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Lakehouse:
    lakehouse = Lakehouse(str(tmp_path / "warehouse"), options={"hoodie.compact.inline": "false"})
    table = lakehouse.create_table("s.orders", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type=request.param)
    table.upsert(rows(*range(6), n=1))
    table.upsert(rows(2, 3, n=2))
    table.savepoint(name="before")
    return lakehouse


def held(house: Lakehouse) -> Lakehouse:
    return house.with_tables_in(HELD, {"s.orders"})


def content(table: HoodieTable) -> pa.Table:
    return table.to_arrow(meta_columns=True)


def test_copy_has_the_rows_the_history_and_the_savepoints_and_is_whole(house: Lakehouse) -> None:
    house.copy_table("s.orders", HELD)
    copied, table = held(house).table("s.orders"), house.table("s.orders")
    assert_same_rows(content(copied), content(table))
    assert_same_rows(read_with_hudi_rs(Path(house.warehouse) / HELD / "s" / "orders"), content(table))
    assert list(copied.timeline) == list(table.timeline)
    assert [one.name for one in copied.savepoints()] == ["before"]
    assert verify(copied.state).findings == ()


def test_neither_table_sees_what_becomes_of_the_other(house: Lakehouse) -> None:
    house.copy_table("s.orders", HELD)
    copied, table = held(house).table("s.orders"), house.table("s.orders")
    before = content(table)
    copied.upsert(rows(0, 7, n=9))
    copied.clean(retain_commits=1)
    assert_same_rows(content(house.table("s.orders")), before)
    assert verify(house.table("s.orders").state).findings == ()

    seen = content(held(house).table("s.orders"))
    table.delete_savepoint("before")
    table.insert_overwrite_table(rows(1, n=5))
    table.clean(retain_commits=1)
    house.drop_table("s.orders")
    assert_same_rows(content(held(house).table("s.orders")), seen)
    assert held(house).tables("s") == ["s.orders"]
    assert house.tables("s") == []


@pytest.mark.parametrize("version", ["6", "9"])
def test_indexes_of_the_copy_are_its_own(house: Lakehouse, version: str, caplog: pytest.LogCaptureFixture) -> None:
    statistics = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    options = {"properties": {**statistics, "hoodie.index.type": "RECORD_INDEX", "hoodie.write.table.version": version}}
    kind = house.table("s.orders").config.table_type.value
    table = house.create_table("s.indexed", schema=SCHEMA, record_key=["id"], table_type="mor" if "MERGE" in kind else "cow", **options)
    table.upsert(rows(*range(6), n=1))
    table.upsert(rows(2, 3, n=2))
    house.copy_table("s.indexed", HELD)
    copied = house.with_tables_in(HELD, {"s.indexed"}).table("s.indexed")
    assert check_metadata_table(copied.state).findings == ()
    written = copied.upsert(rows(0, 7, n=9))
    assert (written.updates, written.inserts) == (1, 1)
    copied.compact() if "MERGE" in kind else copied.clean(retain_commits=1)
    assert caplog.messages == []
    table.upsert(rows(1, 8, n=3))
    for one in (copied, table):
        assert check_metadata_table(TableState.load(one.storage)).findings == ()


def test_copy_takes_no_room_for_data(house: Lakehouse) -> None:
    house.copy_table("s.orders", HELD)
    root = Path(house.warehouse)
    files = [path for path in (root / "s" / "orders").rglob("*") if path.suffix == ".parquet" or ".log." in path.name]
    assert files
    assert all(os.path.samefile(path, root / HELD / path.relative_to(root)) for path in files if not path.name.endswith(".crc"))


def test_state_of_the_copy_is_what_a_write_of_the_table_can_rest_on(house: Lakehouse) -> None:
    state = house.copy_table("s.orders", HELD)
    house.table("s.orders").upsert(rows(0, n=3), expected=state)
    with pytest.raises(ChangedSinceReadError):
        house.table("s.orders").upsert(rows(0, n=4), expected=state)


def test_write_that_is_not_complete_stays_behind(house: Lakehouse) -> None:
    folder = Path(house.warehouse) / "s" / "orders" / ".hoodie"
    for ending in ("requested", "inflight"):
        (folder / f"29991231235959999.deltacommit.{ending}").write_bytes(b"")
        (folder / f"29991231235959999.{'inflight' if ending == 'inflight' else 'commit.requested'}").write_bytes(b"")
    house.copy_table("s.orders", HELD)
    assert not [one for one in held(house).table("s.orders").timeline if not one.is_completed]


def test_table_that_somebody_works_on_is_not_copied(house: Lakehouse) -> None:
    impatient = Lakehouse(house.warehouse, options={"hoodie.write.lock.wait_time_ms": "0"})
    lock = TableLock(house.table("s.orders").storage)
    with lock:
        failures: list[BaseException] = []

        def copy() -> None:
            try:
                impatient.copy_table("s.orders", HELD)
            except LockTimeoutError as error:
                failures.append(error)

        thread = threading.Thread(target=copy)
        thread.start()
        thread.join()
    assert len(failures) == 1
    assert held(house).tables("s") == []


def test_second_copy_to_one_place_is_refused(house: Lakehouse) -> None:
    house.copy_table("s.orders", HELD)
    with pytest.raises(StoredFileExistsError):
        house.copy_table("s.orders", HELD)


def filled_anew(place: Storage, name: RelationName) -> WriteResult:
    create_table(place, TableSpec(name=name.name, schema=SCHEMA, record_key=("n",)))
    return HoodieTable(place).bulk_insert(rows(1, n=1))


def test_names_that_are_held_are_made_replaced_and_dropped_where_they_are_held(house: Lakehouse) -> None:
    names = {"s.orders", "s.fresh"}
    seen = house.with_tables_in(HELD, names)
    house.copy_table("s.orders", HELD)
    seen.create_table("s.fresh", schema=SCHEMA, record_key=["id"])
    seen.create_table("s.other", schema=SCHEMA, record_key=["id"])
    assert seen.tables("s") == ["s.fresh", "s.orders", "s.other"]
    assert house.tables("s") == ["s.orders", "s.other"]
    make_filled(seen.catalog, RelationName("s", "orders"), filled_anew, may_go=lambda *_: None, lock_timeout_ms=1000)
    assert seen.table("s.orders").config.record_key_fields == ("n",)
    assert house.table("s.orders").config.record_key_fields == ("id",)
    assert seen.drop_table("s.orders")
    assert house.exists("s.orders")
    assert not seen.exists("s.orders")
