"""What a session is told, or a table became since, does not change what its files hold: rows are those that Arrow reads, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.spark.frames import composed
from lakehouse_engine.spark.frames.logged.effects import ThinnedFile
from lakehouse_engine.spark.frames.replaced.positions import replaced_of, told_apart
from lakehouse_engine.timeline.config_store import ConfigStore
from tests.spark.test_positions import make, rows
from tests.support.readers import assert_same_rows

TYPES = ("cow", "mor")


@pytest.fixture
def forgiving(spark: SparkSession) -> SparkSession:
    """A session that leaves out files that it cannot read."""
    for key in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        spark.conf.set(f"spark.sql.files.{key}", "true")
    return spark


def only_file(table: HoodieTable) -> Path:
    (path,) = Path(table.path).glob("*.parquet")
    return path


def test_a_session_that_forgives_damage_does_not_lose_rows(lakehouse: Lakehouse, forgiving: SparkSession) -> None:
    lakehouse.sql("create table shop.t (id bigint, s string) tblproperties (primaryKey='id')")
    lakehouse.table("shop.t").bulk_insert(pa.table({"id": range(100), "s": [f"abcdefgh{number}" for number in range(100)]}))
    path = only_file(lakehouse.table("shop.t"))
    column = pq.read_metadata(path).row_group(0).column(6)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 20] ^= 255
    path.write_bytes(content)
    for text in ("select * from shop.t", "create table shop.u as select * from shop.t", "update shop.t set s = 'x' where id < 5"):
        with pytest.raises(Exception, match=r"(?i)corrupt|damaged|checksum|FAILED_READ_FILE"):
            lakehouse.sql(text).collect()


def test_a_session_that_forgives_losses_does_not_lose_rows(lakehouse: Lakehouse, forgiving: SparkSession) -> None:
    lakehouse.sql("create table shop.t (id bigint, s string) tblproperties (primaryKey='id')")
    lakehouse.sql("insert into shop.t values (1, 'a')")
    frame = lakehouse.table("shop.t").dataframe()
    only_file(lakehouse.table("shop.t")).unlink()
    with pytest.raises(Exception, match=r"(?i)FAILED_READ_FILE|not exist|FileNotFound"):
        frame.collect()


@pytest.mark.parametrize("kind", TYPES)
def test_days_of_another_calendar_are_those_of_arrow(kind: str, lakehouse: Lakehouse, spark: SparkSession) -> None:
    lakehouse.sql(f"create table shop.t (id int, d date, t timestamp) tblproperties (primaryKey='id', type='{kind}')")
    for number in range(1, 4):
        lakehouse.sql(
            f"insert into shop.t values ({number}, date'0001-01-0{number}', timestamp'0001-01-0{number} 00:00:00'),"
            " (9, date'1500-01-01', null)"
        )
    expected = lakehouse.table("shop.t").to_arrow()
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", "LEGACY")
    assert_same_rows(lakehouse.sql("select * from shop.t").toArrow().cast(expected.schema), expected)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("before", "after"),
    [("int", "bigint"), ("int", "float"), ("int", "double"), ("bigint", "float"), ("bigint", "double"), ("float", "double")],
)
def test_columns_that_became_wider_are_read_and_written(before: str, after: str, kind: str, lakehouse: Lakehouse) -> None:
    lakehouse.sql(f"create table shop.t (id int, v {before}) tblproperties (primaryKey='id', type='{kind}')")
    lakehouse.sql("insert into shop.t values (1, 5), (2, null), (3, 7)")
    lakehouse.sql("update shop.t set v = 6 where id = 3")
    lakehouse.sql(f"alter table shop.t alter column v type {after}")
    found = lakehouse.sql("select id, v from shop.t order by id").toArrow()
    assert found.to_pydict() == {"id": [1, 2, 3], "v": [5, None, 6]}
    assert_same_rows(found, lakehouse.table("shop.t").to_arrow(["id", "v"]).cast(found.schema))
    assert lakehouse.sql("select count(*) from shop.t where v > 5").collect()[0][0] == 1
    lakehouse.sql("update shop.t set v = 1.0 where id = 1")
    assert lakehouse.sql("select sum(v) from shop.t").collect()[0][0] == 7


def test_a_float_that_became_a_double_keeps_its_digits(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table shop.t (id int, v float) tblproperties (primaryKey='id')")
    lakehouse.sql("insert into shop.t values (1, 0.3), (2, null), (3, 0.7)")
    lakehouse.sql("alter table shop.t alter column v type double")
    assert lakehouse.sql("select v from shop.t order by id").collect() == [(0.3,), (None,), (0.7,)]
    assert lakehouse.sql("select id from shop.t where v = 0.3 or v >= 0.7D order by id").collect() == [(1,), (3,)]
    assert lakehouse.table("shop.t").to_arrow(["v"], filters=pc.field("v") <= 0.3)["v"].to_pylist() == [0.3]
    lakehouse.sql("update shop.t set v = 1 where id = 2")
    assert sorted(lakehouse.table("shop.t").to_arrow()["v"].to_pylist()) == [0.3, 0.7, 1.0]


def by_another_program(table: HoodieTable, before: str, after: str) -> None:
    """The table's only commit as if a program without our seal and name had made it, in whose schema `before` is `after`."""
    (commit,) = Path(table.path, ".hoodie").glob("*.commit")
    metadata = json.loads(commit.read_text())
    extra = {key: value for key, value in metadata["extraMetadata"].items() if not key.startswith("lakehouse.")}
    assert before in extra["schema"]
    commit.write_text(json.dumps({**metadata, "extraMetadata": {**extra, "schema": extra["schema"].replace(before, after)}}))


@pytest.mark.parametrize(("stored", "texts"), [("int", ["5", None]), ("bigint", ["5", None]), ("double", ["5.0", None])])
def test_numbers_that_another_program_made_text_of(
    stored: str, texts: list[str | None], lakehouse: Lakehouse, spark: SparkSession
) -> None:
    lakehouse.sql(f"create table shop.t (id string, v {stored}) tblproperties (primaryKey='id')")
    lakehouse.sql("insert into shop.t values ('a', 5), ('b', null)")
    avro = {"bigint": "long"}.get(stored, stored)
    by_another_program(lakehouse.table("shop.t"), f'"name":"v","type":["null","{avro}"]', '"name":"v","type":["null","string"]')
    opened = HoodieTable.open(lakehouse.table("shop.t").path, spark=spark)
    assert opened.to_arrow(["v"])["v"].to_pylist() == texts
    assert [row.v for row in opened.dataframe().orderBy("id").collect()] == texts
    fresh = Lakehouse(lakehouse.warehouse, spark=spark)
    assert [row.v for row in fresh.sql("select v from shop.t where v is not null").collect()] == texts[:1]


def test_structs_lists_and_maps_that_became_wider(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table shop.t (id int, s struct<a: bigint>, l array<int>, m map<string, bigint>) tblproperties (primaryKey='id')")
    lakehouse.sql("insert into shop.t select 1, named_struct('a', 2L), array(3), map('k', 4L)")
    kinds = {"s": pa.struct([("a", pa.float64())]), "l": pa.list_(pa.float32()), "m": pa.map_(pa.string(), pa.float64())}
    schema = pa.schema([("id", pa.int32()), *kinds.items()])
    wider = pa.table({"id": [2], "s": [{"a": 0.5}], "l": [[0.5]], "m": [[("k", 0.5)]]}, schema=schema)
    lakehouse.table("shop.t").upsert(wider, options={"hoodie.datasource.write.reconcile.schema": "true"})
    assert lakehouse.sql("select s.a, l[0], m['k'] from shop.t order by id").collect() == [(2.0, 3.0, 4.0), (0.5, 0.5, 0.5)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("f > 100", [2]),
        ("f = 'NaN'", [2]),
        ("f >= 3", [2]),
        ("f between 3 and double('NaN')", [2]),
        ("f in (double('nan'), 7)", [2]),
        ("f < 1 or f > 5", [2]),
        ("f < 2", [1]),
        ("r.f > 100", [2]),
    ],
)
def test_not_a_number_is_more_than_every_number(condition: str, expected: list[int], kind: str, lakehouse: Lakehouse) -> None:
    schema = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("r", pa.struct([("f", pa.float32())]))])
    made = lakehouse.create_table("shop.t", schema=schema, record_key=["id"], table_type=kind)
    numbers = [1.0, float("nan"), 2.0]
    made.bulk_insert(pa.table({"id": [1, 2, 3], "f": numbers, "r": [{"f": number} for number in numbers]}, schema=schema))
    assert [row.id for row in lakehouse.sql(f"select id from shop.t where {condition} order by id").collect()] == expected
    lakehouse.sql(f"delete from shop.t where {condition}")
    assert sorted(lakehouse.table("shop.t").to_arrow()["id"].to_pylist()) == sorted({1, 2, 3} - set(expected))


def test_what_is_fetched_follows_the_rules_of_the_table(tmp_path: Path, spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.int64()), ("gone", pa.string()), ("v", pa.int64())])
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    lake = Lakehouse(str(tmp_path), spark=spark, options={"lakehouse.read.files": "ENGINE"})
    lake.create_schema("x")
    made = lake.create_table("x.m", schema=schema, record_key=["id"], ordering_fields=["v"], table_type="mor", properties=payload)
    made.bulk_insert(pa.table([[1, 2], ["n", "n"], [1, 1]], schema=schema))
    made.upsert(pa.table([[1], ["y"], [9]], schema=schema))
    assert lake.table("x.m").dataframe().count() == 2
    ConfigStore(made.storage).update({"hoodie.payload.delete.field": "gone", "hoodie.payload.delete.marker": "y"})
    assert [row.id for row in lake.table("x.m").dataframe().collect()] == [2]


def _thinned(path: str, size: int) -> ThinnedFile:
    return ThinnedFile(path, size, 10, np.array([1]))


def test_files_of_one_name_are_told_apart() -> None:
    first, second, third, fourth = (_thinned(base, 100) for base in ("a/x.parquet", "b/x.parquet", "b/y.parquet", "c/x.parquet"))
    assert told_apart([first, second, third, fourth]) == [(first, third), (second,), (fourth,)]
    assert told_apart([]) == []
    with pytest.raises(ValueError, match="one name"):
        replaced_of([first, second])


@pytest.mark.usefixtures("unmerged")
def test_rows_are_right_where_files_are_told_apart(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", partitioned=True)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    groups = list[int]()

    def apart(files: Any) -> Any:
        groups.append(len(files))
        return [(file,) for file in files]

    monkeypatch.setattr(composed, "told_apart", apart)
    frame: DataFrame = HoodieTable.open(table.path, spark=spark).dataframe(meta_columns=True)
    assert_same_rows(frame.toArrow(), table.to_arrow(meta_columns=True))
    assert groups == [2]


@pytest.mark.parametrize("table_type", TYPES)
def test_a_zero_below_zero_is_zero(table_type: str, lakehouse: Lakehouse) -> None:
    """Parquet's dictionaries have them for two numbers, and Spark asks these which row groups to read."""
    zeros = pa.array([-0.0] * 4 + [1.0])
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("s", pa.struct([("v", pa.float32())]))])
    table = lakehouse.create_table("shop.z", schema=schema, record_key=["id"], table_type=table_type)
    table.bulk_insert(pa.table([range(5), zeros, pa.StructArray.from_arrays([zeros.cast(pa.float32())], ["v"])], schema=schema))
    for condition in ("v = 0.0D", "v = 0", "v >= 0 and v < 1", "v in (0, 5)", "s.v = 0", "v = -0.0D"):
        assert lakehouse.sql(f"select id from shop.z where {condition}").count() == 4, condition
    lakehouse.sql("delete from shop.z where v = 0")
    assert lakehouse.table("shop.z").to_arrow()["id"].to_pylist() == [4]
