"""Tables in a bucket: written, served, taken back, and read by another engine through its own client."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import TableError, TableExistsError, TableNotFoundError
from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.storage.locations import options_of
from lakehouse_engine.storage.objects.store import ObjectStorage
from tests.object_store.dbt_store import Store, s3_store
from tests.support.readers import assert_same_rows
from tests.support.table_builder import RICH, rich_row

__all__ = ["s3_store"]
KINDS = ["cow", "mor"]


def rich(numbers: range, seed: int = 0) -> pa.Table:
    return pa.Table.from_pylist([rich_row(number, seed) for number in numbers], RICH)


@pytest.fixture
def lake(s3_store: Store) -> Lakehouse:
    return Lakehouse(s3_store.place(f"w-{uuid.uuid4().hex}"), storage_options=s3_store.options)


def made(lake: Lakehouse, kind: str, **more: object) -> HoodieTable:
    arguments: Mapping[str, object] = {"record_key": ["id"], "ordering_fields": ["ts"], "partition_by": ["region"], "table_type": kind}
    return lake.create_table("s.t", schema=RICH, **{**arguments, **more})  # type: ignore[arg-type]


def ids(table: HoodieTable) -> list[int]:
    return sorted(table.to_arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_writes_services_and_ways_back(lake: Lakehouse, kind: str) -> None:
    table = made(lake, kind)
    table.bulk_insert(rich(range(12)))
    first = table.upsert(rich(range(8, 16), seed=1)).instant
    table.savepoint(name="kept")
    table.delete(pa.table({"id": pa.array([1, 2], pa.int64())}))
    table.insert(rich(range(30, 33)))
    assert ids(table) == [0, *range(3, 16), 30, 31, 32]
    if kind == "mor":
        table.compact()
    assert ids(table) == [0, *range(3, 16), 30, 31, 32]
    assert sorted(table.to_arrow(as_of=first)["id"].to_pylist()) == list(range(16))
    last = table.insert_overwrite(rich(range(40, 42))).instant
    table.rollback(last)
    assert ids(table) == [0, *range(3, 16), 30, 31, 32]
    table.restore("kept")
    assert ids(table) == list(range(16))
    table.delete_savepoint("kept")
    for number in range(5):
        table.upsert(rich(range(number, number + 2), seed=number + 3))
    table.clean(retain_commits=1)
    table.archive(min_commits=2, max_commits=3, options={"hoodie.clean.commits.retained": "1"})
    again = lake.table("s.t")
    assert ids(again) == list(range(16))
    assert_same_rows(again.to_arrow(meta_columns=True), table.to_arrow(meta_columns=True))


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_rs_reads_them_through_its_own_client(lake: Lakehouse, s3_store: Store, kind: str) -> None:
    hudi = pytest.importorskip("hudi")
    table = made(lake, kind)
    table.bulk_insert(rich(range(12)))
    table.upsert(rich(range(8, 16), seed=1))
    table.delete(pa.table({"id": pa.array([1, 2], pa.int64())}))
    theirs = hudi.HudiTableBuilder.from_base_uri(table.path).with_options(s3_store.for_hudi_rs).build().read(hudi.HudiReadOptions())
    assert_same_rows(pa.Table.from_batches([pa.record_batch(one) for one in theirs]), table.to_arrow(meta_columns=True))


def _write(place: str, options: Mapping[str, str], writer: int, rounds: int) -> None:
    table = Lakehouse(place, storage_options=options).table("s.t")
    for number in range(rounds):
        key = 1000 * (writer + 1) + number
        shared = pa.table({"id": [1, key], "n": [writer * 100 + number, 0], "ts": [number, 0]})
        table.upsert(shared)


@pytest.mark.parametrize("kind", KINDS)
def test_four_processes_lose_nothing(lake: Lakehouse, s3_store: Store, kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("ts", pa.int64())])
    lake.create_table("s.t", schema=schema, record_key=["id"], ordering_fields=["ts"], table_type=kind)
    context, rounds = multiprocessing.get_context("spawn"), 4
    arguments = [(lake.warehouse, dict(s3_store.options), writer, rounds) for writer in range(4)]
    workers = [context.Process(target=_write, args=one) for one in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(180)
        assert worker.exitcode == 0
    table = lake.table("s.t")
    assert ids(table) == sorted([1, *(1000 * (writer + 1) + number for writer in range(4) for number in range(rounds))])
    assert len(table.timeline.completed().writes()) == 4 * rounds


def test_a_dropped_table_is_gone_and_its_name_free(lake: Lakehouse) -> None:
    made(lake, "cow").bulk_insert(rich(range(5)))
    with pytest.raises(TableExistsError):
        made(lake, "cow")
    assert lake.drop_table("s.t")
    assert lake.catalog.storage.walk("s/t") == []
    with pytest.raises(TableNotFoundError):
        lake.table("s.t")
    made(lake, "mor").bulk_insert(rich(range(3)))
    assert ids(lake.table("s.t")) == [0, 1, 2]


@pytest.mark.parametrize("after", range(1, 9))
def test_a_drop_that_was_cut_off_leaves_nothing_that_a_new_table_takes_for_its_own(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """By name it is the old table, whole, or none: never one with the old timeline."""
    made(lake, "cow").bulk_insert(rich(range(5)))
    calls = iter(range(1, 100))

    def cut(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(storage: ObjectStorage, *arguments: Any) -> Any:
            if "s/t" not in str(arguments) or ".locks/" in str(arguments[0]) or next(calls) < after:
                return method(storage, *arguments)
            raise KeyboardInterrupt

        return call

    with monkeypatch.context() as patched:
        for name in ("delete", "delete_all", "overwrite"):
            patched.setattr(ObjectStorage, name, cut(getattr(ObjectStorage, name)))
        with suppress(KeyboardInterrupt):
            lake.drop_table("s.t")
    fresh = Lakehouse(lake.warehouse, storage_options=dict(options_of(lake.catalog.storage)))
    if fresh.exists("s.t"):
        assert ids(fresh.table("s.t")) == list(range(5))
        fresh.drop_table("s.t")
    table = made(fresh, "cow")
    assert table.timeline.completed().writes().last() is None
    table.bulk_insert(rich(range(2)))
    assert ids(table) == [0, 1]
    assert fresh.drop_schema("s", cascade=True)
    assert fresh.catalog.storage.walk() == []


def test_what_needs_a_rename_is_refused_before_anything_is_changed(lake: Lakehouse) -> None:
    table = made(lake, "cow")
    table.bulk_insert(rich(range(5)))
    lake.clone("s.t", "s.other")
    before = [(entry.path, entry.modified_ms) for entry in lake.catalog.storage.walk() if "table_lock" not in entry.path]
    for act in (lambda: lake.rename_table("s.t", "s.u"), lambda: lake.clone("s.other", "s.t", or_replace=True)):
        with pytest.raises(TableError, match="no rename"):
            act()
    assert [(entry.path, entry.modified_ms) for entry in lake.catalog.storage.walk() if "table_lock" not in entry.path] == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_clone_is_copied_by_the_store_and_shares_nothing(lake: Lakehouse, s3_store: Store, kind: str) -> None:
    hudi = pytest.importorskip("hudi")
    table = made(lake, kind)
    table.bulk_insert(rich(range(12)))
    table.upsert(rich(range(1), seed=1))
    result = lake.clone("s.t", "s.u")
    assert result is not None
    clone = lake.table("s.u")
    assert_same_rows(clone.to_arrow(), table.to_arrow())
    told = clone.state.commit_metadata(clone.timeline.completed().writes().instants[-1]).extra_metadata
    assert told["lakehouse.clone.source"] == "s.t"
    assert " 0 copied" not in told["lakehouse.clone.files"]
    theirs = hudi.HudiTableBuilder.from_base_uri(clone.path).with_options(s3_store.for_hudi_rs).build().read(hudi.HudiReadOptions())
    assert_same_rows(pa.Table.from_batches([pa.record_batch(one) for one in theirs]), clone.to_arrow(meta_columns=True))
    clone.upsert(rich(range(20, 22)))
    assert ids(table) == list(range(12))
    assert lake.drop_table("s.t")
    assert ids(lake.table("s.u")) == [*range(12), 20, 21]
    assert lake.catalog.storage.list("s/.dropped") == []


def test_views_and_comments_are_objects(lake: Lakehouse) -> None:
    made(lake, "cow")
    lake.create_view("s.v", "select 1")
    lake.catalog.set_comments(lake.catalog.tables("s")[0], "said")
    other = Lakehouse(lake.warehouse, storage_options=dict(options_of(lake.catalog.storage)))
    assert other.views("s") == ["s.v"]
    assert other.catalog.comments(other.catalog.tables("s")[0]).comment == "said"
    assert other.drop_schema("s", cascade=True)
    assert other.schemas() == []


def test_slices_are_completed_no_earlier_than_they_began(lake: Lakehouse) -> None:
    """Hudi 1.x takes the object's time, in whole seconds, for the time of completion, and looks for the slice of a log by it."""
    properties = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    table = made(lake, "mor", properties=properties)
    for number in range(3):
        # Most of a second is left: a write of few rows is done before its end.
        time.sleep(1.1 - time.time() % 1)
        table.upsert(rich(range(number, number + 4), seed=number))
    files = table.storage.walk()
    slices = {PurePath(entry.path).stem.rpartition("_")[2] for entry in files if entry.path.endswith(".parquet")}
    completed = {PurePath(entry.path).stem: entry.modified_ms for entry in files if entry.path.endswith(("commit", "deltacommit"))}
    assert len(slices) > 3
    early = [instant for instant in slices if completed[instant] < parse_instant_time(instant).timestamp() * 1000]
    assert early == []
