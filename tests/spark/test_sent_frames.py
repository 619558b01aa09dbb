"""Frames of log rows are sent to a session once, and go on being right for whoever holds them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.spark import local_files
from lakehouse_engine.spark.frames import composed, fetched
from lakehouse_engine.spark.frames.logged.effects import EffectCache, effect_key
from lakehouse_engine.spark.frames.sent import SentFrames
from tests.spark.test_positions import make, rows
from tests.support.connect_server import WANTED, classic_only
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.usefixtures("unmerged")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> SentFrames:
    fresh = SentFrames(limit=64 * 1024 * 1024)
    monkeypatch.setattr(composed, "SENT", fresh)
    monkeypatch.setattr(composed, "EFFECTS", EffectCache(limit=64 * 1024 * 1024))
    return fresh


@pytest.fixture
def effects(sent: SentFrames) -> EffectCache:
    return composed.EFFECTS


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lakehouse:
    """`s.t` has two slices with logs, in other partitions."""
    made = Lakehouse(str(tmp_path), spark=spark)
    made.create_schema("s")
    table = made.create_table("s.t", schema=rows([], 0).schema, record_key=["id"], partition_by=["region"], table_type="mor")
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    return made


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> HoodieTable:
    made = make(tmp_path / "t")
    made.bulk_insert(rows(list(range(100)), 1))
    made.upsert(rows([3, 4], 2))
    return HoodieTable.open(str(tmp_path / "t"), spark=spark)


def counting(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every table that is sent to the session."""
    counts, create = list[int](), spark.createDataFrame

    def counted(data: pa.Table, *schema: object) -> DataFrame:
        counts.append(len(data))
        return create(data, *schema)

    monkeypatch.setattr(spark, "createDataFrame", counted)
    return counts


def test_what_was_sent_is_not_sent_again_until_a_log_comes(
    table: HoodieTable, spark: SparkSession, sent: SentFrames, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counting(spark, monkeypatch)
    for _ in range(3):
        assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert counts == [1, 2], "one block of bits, two rows"
    table.upsert(rows([5], 3))
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert counts == [1, 2, 1, 3]


def test_a_frame_outlives_what_is_kept_for_it(table: HoodieTable, sent: SentFrames, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, frame = table.to_arrow(), table.dataframe()
    monkeypatch.setattr(composed, "SENT", SentFrames(limit=0))
    table.upsert(rows([3, 9], 3))
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert_same_rows(frame.toArrow(), expected)


@classic_only("a server's executors are not of this machine")
@pytest.mark.parametrize("options", [{}, {"lakehouse.read.files": "ENGINE"}], ids=["logs", "fetched"])
def test_rows_whose_file_somebody_removed_are_sent_again(
    table: HoodieTable, sent: SentFrames, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who cleans folders for temporary files takes those of sessions that live for weeks."""
    monkeypatch.setattr(local_files, "_written", {})
    monkeypatch.setattr(local_files, "_LEAST", 0)
    monkeypatch.setattr(fetched, "_IN_PLAN", 0)
    flat = HoodieTable.open(table.path, spark=table._spark, options=options)
    names, folder = ["id", "region", "ts", "name"], Path(SparkFiles.getRootDirectory())
    for _ in range(3):
        assert_same_rows(flat.dataframe(columns=names).toArrow(), flat.to_arrow(columns=names))
        written = list(folder.glob("lakehouse-rows-*"))
        assert written
        for path in written:
            path.unlink()


def test_columns_are_told_apart(table: HoodieTable, sent: SentFrames) -> None:
    for meta_columns in (True, False, True):
        assert_same_rows(table.dataframe(meta_columns=meta_columns).toArrow(), table.to_arrow(meta_columns=meta_columns))


def test_two_frames_of_one_table_can_be_joined(table: HoodieTable, sent: SentFrames) -> None:
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == 100
    assert left.join(right, left["id"] < right["id"]).where(right["id"] == 4).count() == 4


def decoded(effects: EffectCache, lake: Lakehouse) -> list[list[str]]:
    """The columns that are kept of each slice of `s.t` with logs."""
    plan = plan_query(lake.table("s.t").state, Query())
    assert plan.reader is not None
    found = [effects.get(effect_key(plan.reader, piece)) for piece in plan.logged]
    return [effect.added.column_names for effect in found if effect is not None]


def assert_decoded(effects: EffectCache, lake: Lakehouse, *expected: list[str]) -> None:
    """In any order. A session of a server is given all of a table's columns."""
    every = rows([], 0).schema.names
    assert sorted(map(sorted, decoded(effects, lake))) == sorted(sorted(every if WANTED else one) for one in expected)


def test_the_first_statement_decodes_what_it_names_and_the_next_that_names_others_all(lake: Lakehouse, effects: EffectCache) -> None:
    every = rows([], 0).schema.names
    expected = lake.table("s.t").to_arrow().sort_by("id")
    for text, kept in [
        ("select max(TS) as most, count(*) as rows from s.t", ["ts"]),
        ("select ts from s.t where ts > 1 order by ts", ["ts"]),
        ("select count(*) as rows from s.t", ["ts"]),
        ("select region, count(*) as rows from s.t group by region order by region", ["region", "ts", *every]),
        ("select * from s.t order by id", ["region", "ts", *every]),
    ]:
        found = lake.sql(text).toArrow()
        assert_decoded(effects, lake, *[list(dict.fromkeys(kept))] * 2)
    assert found.equals(expected.cast(found.schema))


def test_rows_without_columns_are_counted(lake: Lakehouse, effects: EffectCache) -> None:
    assert lake.sql("select count(*) from s.t").collect()[0][0] == 100
    assert lake.sql("select 1 from s.t").count() == 100
    assert_decoded(effects, lake, *[["_hoodie_record_key"]] * 2)


def test_rows_of_slices_that_have_no_column_in_common_are_counted(lake: Lakehouse, effects: EffectCache) -> None:
    lake.sql("select id from s.t where region = 'r1'").collect()
    assert lake.sql("select count(*) from s.t").collect()[0][0] == 100
    assert_decoded(effects, lake, ["_hoodie_record_key"], ["id", "region"])
    assert lake.sql("select count(ts) from s.t").collect()[0][0] == 100


def test_a_slice_that_changes_is_read_with_what_is_kept_of_others(lake: Lakehouse, effects: EffectCache) -> None:
    lake.sql("select * from s.t").collect()
    lake.table("s.t").upsert(rows([0, 2], 3))
    assert lake.sql("select sum(ts) from s.t").collect()[0][0] == 96 + 2 * 2 + 2 * 3
    assert_decoded(effects, lake, ["ts"], rows([], 0).schema.names)
    for _ in range(2):
        found = lake.sql("select * from s.t order by id").toArrow()
        assert found.equals(lake.table("s.t").to_arrow().sort_by("id").cast(found.schema))


def test_one_statement_that_reads_in_several_ways(lake: Lakehouse, effects: EffectCache) -> None:
    changed = "select c.ts, t.id from hudi_table_changes('s.t', 'latest_state', 'earliest') c join s.t t on c.id = t.id where c.ts = 2"
    assert sorted(lake.sql(changed).collect()) == [(2, 0), (2, 1), (2, 2), (2, 3)]
    assert lake.sql("select _hoodie_record_key from hudi_table_changes('s.t', 'latest_state', 'earliest')").count() == 100
    assert lake.sql("with x as (select ts from s.t) select (select max(ts) from x), (select count(*) from s.t)").collect() == [(2, 100)]


def test_a_frame_of_some_columns_decodes_these(lake: Lakehouse, effects: EffectCache) -> None:
    table = lake.table("s.t")
    assert_same_rows(table.dataframe(columns=["ts", "id"]).toArrow(), table.to_arrow(["ts", "id"]))
    assert decoded(effects, lake) == [["ts", "id"]] * 2
    assert_same_rows(table.dataframe(meta_columns=True).toArrow(), table.to_arrow(meta_columns=True))
