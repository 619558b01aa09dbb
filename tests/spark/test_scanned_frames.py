"""Frames over base files that a session keeps: nothing is listed twice, and nothing else shows than what is there."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakehouse_engine.spark.frames.scan as frames
from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import MissingFileError
from lakehouse_engine.spark.frames import composed, scanned
from lakehouse_engine.spark.frames.composed import ComposedFrames
from lakehouse_engine.spark.frames.logged.effects import EffectCache
from lakehouse_engine.spark.frames.scanned import ScannedFrames
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
SETTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@pytest.fixture
def table(lakehouse: Lakehouse) -> HoodieTable:
    """`shop.t`, of forty files: more than Spark lists without a job."""
    simple = {"hoodie.index.type": "SIMPLE"}
    made = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], properties=simple)
    made.bulk_insert(pa.table({"id": range(80), "day": [f"d{one % 40:02d}" for one in range(80)]}, schema=SCHEMA))
    return made


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files Spark was told to look at, each time."""
    found, original = list[int](), scanned._listed

    def counted(spark: Any, plan: Any, files: Any, uris: Any, base: Any) -> Any:
        found.append(len(uris))
        return original(spark, plan, files, uris, base)

    monkeypatch.setattr(scanned, "_listed", counted)
    return found


def test_statements_on_the_same_files_list_them_once(table: HoodieTable, lakehouse: Lakehouse, listed: list[int]) -> None:
    for _ in range(3):
        assert lakehouse.sql("select count(*) from shop.t where id >= 0").collect()[0][0] == 80
    assert lakehouse.sql("select count(distinct day) from shop.t").collect()[0][0] == 40
    assert listed == [40]
    table.upsert(pa.table({"id": [0, 100], "day": ["d00", "d99"]}, schema=SCHEMA))
    assert lakehouse.sql("select count(*) from shop.t").collect()[0][0] == 81
    assert listed == [40, 41]


@classic_only("jobs are counted by a SparkContext")
def test_many_files_are_listed_without_a_job_of_spark(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession) -> None:
    before, context = spark.conf.get(SETTING), spark.sparkContext
    context.setJobGroup("listing", "what planning runs")
    frame = lakehouse.sql("select id from shop.t")
    assert list(context.statusTracker().getJobIdsForGroup("listing")) == []
    assert spark.conf.get(SETTING) == before
    assert frame.count() == 80


def test_frames_of_the_same_files_can_be_joined(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession, listed: list[int]) -> None:
    for left, right in (
        (table.dataframe(spark), table.dataframe(spark)),
        (lakehouse.sql("select * from shop.t"), lakehouse.sql("select * from shop.t")),
    ):
        joined = left.join(right, left["id"] == right["id"] + 1)
        assert joined.count() == 79
        assert joined.select(left["id"], right["id"]).where(left["id"] != right["id"] + 1).count() == 0
    assert lakehouse.sql("select 1 from shop.t a join shop.t b on a.id = b.id + 1").count() == 79
    assert listed == [40]


def test_a_file_that_went_is_missed_by_the_next_statement(table: HoodieTable, lakehouse: Lakehouse) -> None:
    lakehouse.sql("select count(*) from shop.t").collect()
    next(Path(table.path, "day=d07").glob("*.parquet")).unlink()
    with pytest.raises(MissingFileError):
        lakehouse.sql("select count(*) from shop.t")


def test_other_columns_and_other_moments_have_frames_of_their_own(table: HoodieTable, lakehouse: Lakehouse) -> None:
    lakehouse.sql("select * from shop.t").collect()
    lakehouse.sql("alter table shop.t add columns (n int)")
    assert_same_rows(lakehouse.sql("select * from shop.t").toArrow(), table.to_arrow())
    assert lakehouse.sql("select * from shop.t version as of '-1'").columns == ["id", "day"]


def test_a_file_that_was_written_again_under_its_name_is_listed_anew(table: HoodieTable, lakehouse: Lakehouse, listed: list[int]) -> None:
    assert lakehouse.sql("select * from shop.t").count() == 80
    file = next(Path(table.path, "day=d07").glob("*.parquet"))
    os.utime(file, (1, 1))
    assert lakehouse.sql("select * from shop.t").count() == 80
    assert listed == [40, 40]


def _views(spark: SparkSession) -> set[str]:
    return {view.name for view in spark.catalog.listTables() if view.name.startswith("__lakehouse_")}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_statements_that_read_the_same_rows_share_a_view(lakehouse: Lakehouse, spark: SparkSession, table_type: str) -> None:
    made = lakehouse.create_table("shop.u", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type=table_type)
    made.bulk_insert(pa.table({"id": range(10), "day": ["a", "b"] * 5}, schema=SCHEMA))
    made.upsert(pa.table({"id": [0, 11], "day": ["a", "a"]}, schema=SCHEMA))

    def new_views(text: str, expected: int) -> int:
        before = _views(spark)
        assert lakehouse.sql(text).collect()[0][0] == expected
        return len(_views(spark) - before)

    first = "select count(*) from shop.u where day = 'a'"
    assert new_views(first, 6) == 1
    assert new_views(first, 6) == 0
    assert new_views("select sum(x.id) from shop.u x join shop.u y on x.id = y.id where x.day = 'a' and y.day = 'a'", 31) == 0
    assert new_views("select count(*) from shop.u where day = 'b'", 5) == 1
    made.upsert(pa.table({"id": [13], "day": ["a"]}, schema=SCHEMA))
    assert new_views(first, 7) == 1
    lakehouse.drop_pins()
    assert _views(spark) == set()
    assert new_views(first, 7) == 1


def test_a_session_that_was_tidied_up_goes_on(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession) -> None:
    for _ in range(2):
        assert lakehouse.sql("select count(*) from shop.t").collect()[0][0] == 80
        for view in _views(spark):
            spark.catalog.dropTempView(view)


@pytest.mark.usefixtures("unmerged")
def test_frames_weigh_what_they_hold_of_logs(lakehouse: Lakehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, effects = ComposedFrames(limit=100_000), EffectCache(limit=1)  # each reading decodes the logs anew
    monkeypatch.setattr(composed, "COMPOSED", fresh)
    monkeypatch.setattr(composed, "EFFECTS", effects)
    made = lakehouse.create_table("shop.u", schema=SCHEMA, record_key=["id"], table_type="mor")
    made.bulk_insert(pa.table({"id": range(2000), "day": ["a"] * 2000}, schema=SCHEMA))
    made.upsert(pa.table({"id": range(500), "day": ["b" * 60] * 500}, schema=SCHEMA))
    for _ in range(4):
        assert lakehouse.sql("select count(id) from shop.u where day like 'b%'").collect()[0][0] == 500
    held = [one for one, _ in fresh.of(spark)._kept.values()]
    assert len(held) == 1, "two are more than the limit"
    assert 50_000 < sum(one.sent for one in held) < fresh.of(spark).size <= 100_000


@classic_only("a session of a server is closed by name")
def test_what_is_kept_for_a_session_goes_with_it(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession) -> None:
    other = spark.newSession()
    gone = weakref.ref(other)
    through = lakehouse.with_session(other)
    assert through.sql("select count(*) from shop.t").collect()[0][0] == 80
    del other, through
    spark.newSession()  # PySpark itself holds the newest one
    gc.collect()
    assert gone() is None


def test_threads_that_name_one_frame_agree_on_its_view(lakehouse: Lakehouse, spark: SparkSession) -> None:
    pins = lakehouse._pins
    assert pins is not None
    frame, before, start = spark.range(3), _views(spark), threading.Barrier(4)

    def name(_: int) -> str:
        start.wait()
        return pins.keep(frame)

    with ThreadPoolExecutor(4) as pool:
        (chosen,) = set(pool.map(name, range(4)))
    assert _views(spark) - before == {chosen}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("when", ["planned", pytest.param("looked at", marks=classic_only("a server looks when a frame is run"))])
def test_a_frame_is_made_of_what_a_restore_leaves(
    table_type: str, when: str, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lakehouse.create_table("shop.u", schema=SCHEMA, record_key=["id"], table_type=table_type)
    table.bulk_insert(pa.table({"id": range(80), "day": ["a"] * 80}, schema=SCHEMA))
    first = table.savepoint()
    table.upsert(pa.table({"id": range(100), "day": ["b"] * 100}, schema=SCHEMA))
    place, name = (frames, "scan") if when == "planned" else (scanned, "_read")
    original, done = getattr(place, name), list[int]()

    def restored(*given: Any, **named: Any) -> Any:
        if not done:
            done.append(1)
            lakehouse.table("shop.u").restore(first.instant)
        return original(*given, **named)

    monkeypatch.setattr(place, name, restored)
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert done
    assert table.to_arrow()["day"].unique().to_pylist() == ["a"]


@classic_only("a server looks when a frame is run")
def test_a_file_that_went_after_it_was_looked_at_is_named(
    table: HoodieTable, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, path = scanned._read, next(Path(table.path).rglob("*.parquet"))

    def gone(*given: Any) -> Any:
        path.unlink(missing_ok=True)
        return original(*given)

    monkeypatch.setattr(scanned, "_read", gone)
    with pytest.raises(MissingFileError, match=path.name):
        lakehouse.sql("select * from shop.t")


@classic_only("rows of logs are kept by the driver")
def test_frames_weigh_what_the_jvm_has_of_their_columns(lakehouse: Lakehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand columns some megabytes each: a session that reads between many commits had them all."""
    bounded, files = ComposedFrames(limit=1_500_000), ScannedFrames(limit=1_500_000)
    monkeypatch.setattr(composed, "COMPOSED", bounded)
    monkeypatch.setattr(scanned, "SCANNED", files)
    schema = pa.schema([("id", pa.int64()), *((f"c{number}", pa.int32()) for number in range(300))])
    made = lakehouse.create_table("shop.u", schema=schema, record_key=["id"], table_type="mor")
    for number in range(4):
        made.upsert(pa.table([[1, 2], *([number] * 2 for _ in range(300))], schema=schema))
        assert made.dataframe(spark).count() == 2
    assert 0 < len(bounded.of(spark)._kept) < 3
    assert 0 < len(files.of(spark)._kept) < 3
