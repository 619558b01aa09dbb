"""Logs that executors decode: the rows that Arrow reads and that the driver's way gives, and nothing decoded on the driver."""

from __future__ import annotations

import random
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import CorruptLogError, LakehouseError, OptionError, SchemaIncompatibleError
from lakehouse_engine.files import slice_reader
from lakehouse_engine.read.arrow_scan import plan_tasks
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.spark.frames import decoding
from lakehouse_engine.spark.frames.scan import shared_scan
from tests.model_based.histories import History, Make, Refused
from tests.spark.test_positions import make, rows
from tests.support.fixtures import fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

LIMIT = "lakehouse.read.logs.driver.max.bytes"
EXECUTORS, DRIVER = {LIMIT: 0}, {LIMIT: 10**12}
HUDIS = spark_fixtures(("v6-0.15.0",), "mor") if fixtures_root() is not None else []


@pytest.fixture
def decoded_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The slices whose logs this process decoded."""
    found, original = list[str](), slice_reader.scan_logs

    def counted(storage: Any, piece: Any, *arguments: Any, **named: Any) -> Any:
        found.append(piece.slice.file_id)
        return original(storage, piece, *arguments, **named)

    monkeypatch.setattr(slice_reader, "scan_logs", counted)
    return found


def by_executors(path: str, spark: SparkSession) -> HoodieTable:
    return HoodieTable.open(path, spark=spark, options=EXECUTORS)


def assert_both_ways_read_as_arrow(path: str, spark: SparkSession, *, most: int | None = None) -> None:
    table = HoodieTable.open(path)
    meta = table.config.populates_meta_fields
    times = [write.requested_time for write in table.timeline.completed().writes()]
    queries: list[dict[str, Any]] = [{}, {"as_of": times[len(times) // 2]}, {"query": "incremental", "begin": times[0], "end": times[-1]}]
    for query in queries[:most]:
        try:
            expected = table.to_arrow(meta_columns=meta, **query)
        except LakehouseError as error:
            with pytest.raises(type(error)):
                by_executors(path, spark).dataframe(meta_columns=meta, **query)
            continue
        for options in (EXECUTORS, DRIVER):
            frame = HoodieTable.open(path, spark=spark, options=options).dataframe(meta_columns=meta, **query)
            assert frame.columns == expected.schema.names
            assert_same_rows(frame.toArrow(), expected, what=f"{query} {options}")


@pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
@pytest.mark.parametrize("name", HUDIS)
def test_tables_of_hudi(name: str, spark: SparkSession, tmp_path: Path) -> None:
    assert_both_ways_read_as_arrow(str(unpack_spark_fixture(name, tmp_path)), spark)


@pytest.mark.parametrize("seed", range(5))
def test_random_histories(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    chance, read = random.Random(seed), 0
    history = History(Make.random(chance))
    while history.make.table_type != "mor":
        history = History(Make.random(chance))
    for _ in range(40):
        try:
            history.do(history.propose(chance))
        except Refused:
            continue
        if plan_query(history.table.state, Query()).logged and chance.random() < 0.2:
            read += 1
            path = tmp_path / str(read)
            for entry in history.table.storage.walk():
                target = path / entry.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(history.table.storage.read(entry.path))
            assert_both_ways_read_as_arrow(str(path), spark, most=None if read == 1 else 1)
        if read == 3:
            break
    assert read


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> HoodieTable:
    """Two partitions, both of a base file and a log."""
    made = make(tmp_path / "t", partitioned=True)
    made.bulk_insert(rows(list(range(100)), 1))
    made.upsert(rows([0, 1, 2, 3], 2))
    return by_executors(made.path, spark)


def test_the_driver_decodes_nothing_above_the_weight_and_all_below(
    table: HoodieTable, spark: SparkSession, decoded_here: list[str]
) -> None:
    frame = table.dataframe()
    assert frame.count() == 100
    assert decoded_here == []
    size = plan_query(table.state, Query()).log_size
    for limit, slices in ((size - 1, 0), (size, 2)):
        decoded_here.clear()
        HoodieTable.open(table.path, spark=spark, options={LIMIT: limit}).dataframe().collect()
        assert len(decoded_here) == slices


def test_a_frame_stays_at_its_commit(table: HoodieTable) -> None:
    expected, frame = table.to_arrow(), table.dataframe()
    table.upsert(rows([3, 9], 3))
    assert_same_rows(frame.toArrow(), expected)
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    table.compact()
    assert_same_rows(frame.toArrow(), expected)


def test_two_frames_of_one_table_can_be_joined(table: HoodieTable) -> None:
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == 100


def plan_text(frame: DataFrame) -> str:
    with redirect_stdout(StringIO()) as shown:
        frame.explain()
    return shown.getvalue()


def test_files_without_logs_are_scanned_by_spark(table: HoodieTable, decoded_here: list[str]) -> None:
    table.compact()
    table.upsert(rows([0], 3))
    frame = table.dataframe()
    plan = plan_text(frame)
    assert "FileScan parquet" in plan
    assert "MapInArrow" in plan
    decoded_here.clear()
    assert frame.count() == 100
    assert decoded_here == []


def test_columns_come_in_the_order_asked_for(table: HoodieTable) -> None:
    for columns in (["name", "id"], ["ts"], ["_hoodie_commit_time", "ID"], []):
        frame = table.dataframe(columns=columns)
        assert_same_rows(frame.toArrow(), table.to_arrow(columns))
        assert frame.columns == table.to_arrow(columns).column_names
    with pytest.raises(SchemaIncompatibleError, match="no column 'nothing'"):
        table.dataframe(columns=["nothing"])


@pytest.mark.parametrize("limit", [0, 10**12])
def test_filters_keep_the_rows_that_arrow_keeps(limit: int, table: HoodieTable, spark: SparkSession, decoded_here: list[str]) -> None:
    table.compact()
    table.upsert(rows([0, 2, 4], 3))
    read = HoodieTable.open(table.path, spark=spark, options={LIMIT: limit})
    cases = [
        pc.field("region") == "r0",
        pc.field("region") == "r1",
        (pc.field("ts") == 3) | (pc.field("name") == "Zoë"),
        pc.field("_hoodie_partition_path") == "region=r1",
        pc.field("region") == "nowhere",
    ]
    for filters in cases:
        expected = read.to_arrow(["id", "name"], filters=filters)
        decoded_here.clear()
        assert_same_rows(read.dataframe(columns=["id", "name"], filters=filters).toArrow(), expected)
        assert decoded_here == []
    with pytest.raises(OptionError, match="does not fit"):
        read.dataframe(filters=pc.field("nothing") == 1)


def test_filters_on_the_partition_leave_other_slices_alone(table: HoodieTable) -> None:
    damage(table, "r1")
    kept = table.dataframe(filters=pc.field("region") == "r0")
    assert kept.count() == 50
    with pytest.raises(Exception, match="CorruptLogError"):
        table.dataframe(filters=pc.field("region") == "r1").count()


def damage(table: HoodieTable, value: str, column: str = "region") -> Path:
    [log] = Path(table.path, f"{column}={value}").glob(".*.log.*")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    return log


def test_a_damaged_log_fails_the_query_with_the_engines_error(table: HoodieTable) -> None:
    log = damage(table, "r0")
    frame = table.dataframe()
    with pytest.raises(Exception, match="CorruptLogError") as caught:
        frame.collect()
    assert log.name in str(caught.value)
    with pytest.raises(CorruptLogError):
        table.to_arrow()


def test_a_log_that_goes_meanwhile_fails_the_query_by_name(table: HoodieTable) -> None:
    frame = table.dataframe()
    [log] = Path(table.path, "region=r1").glob(".*.log.*")
    log.unlink()
    with pytest.raises(Exception, match="MissingFileError") as caught:
        frame.collect()
    assert log.name in str(caught.value)


def test_log_rows_beyond_memory_go_through_files(table: HoodieTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoding, "_HELD", 0)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "local"))
    (tmp_path / "local").mkdir()
    plan = plan_query(table.state, Query())
    written: list[Path] = []
    for batch in decoding.read_group(plan_tasks(plan, ["id", "name"], files=False)):
        assert batch.num_rows <= decoding._BATCH
        written += (tmp_path / "local").rglob("*.arrow")
    assert written
    assert not list((tmp_path / "local").iterdir())


def test_small_slices_share_a_task_and_large_ones_have_their_own(table: HoodieTable) -> None:
    plan = plan_query(table.state, Query())
    assert plan.reader is not None
    tasks = plan_tasks(plan, ["id"])
    groups = decoding.grouped(tasks * 40, 2)
    assert sum(map(len, groups)) == 40 * len(tasks)
    assert 2 <= len(groups) <= 4
    assert [len(group) for group in decoding.grouped(tasks, 2)] == [1, 1]


def test_sql_reads_and_writes_by_executors(spark: SparkSession, tmp_path: Path, decoded_here: list[str]) -> None:
    lakehouse = Lakehouse(str(tmp_path / "w"), spark=spark, options=EXECUTORS)
    lakehouse.create_schema("shop")
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64())])
    made = lakehouse.create_table("shop.t", schema=schema, record_key=["id"], partition_by=["day"], table_type="mor")
    made.insert(pa.table({"id": [1, 2, 3, 4], "day": ["a", "a", "b", "b"], "n": [0, 0, 0, 0]}, schema=schema))
    lakehouse.sql("update shop.t set n = 7 where id = 2")
    lakehouse.sql("delete from shop.t where n = 0 and id = 3")
    lakehouse.sql("merge into shop.t as t using (select 4 as id, 'b' as day, 9 as n) as s on t.id = s.id when matched then update set *")
    lakehouse.sql("create table shop.copy tblproperties (primaryKey = 'id') as select id, n from shop.t where day = 'b'")
    assert lakehouse.sql("select id, n from shop.t order by id").toArrow().to_pylist() == [  # type: ignore[union-attr]
        {"id": 1, "n": 0},
        {"id": 2, "n": 7},
        {"id": 4, "n": 9},
    ]
    assert lakehouse.table("shop.copy").to_arrow().to_pylist() == [{"id": 4, "n": 9}]


@pytest.fixture(params=[EXECUTORS, DRIVER], ids=["executors", "driver"])
def days(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lakehouse:
    """Tables `shop.t` and `shop.u` of four days, logs on each."""
    lakehouse = Lakehouse(str(tmp_path / "w"), spark=spark, options=request.param)
    lakehouse.create_schema("shop")
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64()), ("s", pa.string())])
    numbers = list(range(20))
    batch = {"id": numbers, "day": [f"d{one % 4}" for one in numbers], "n": numbers, "s": ["x"] * 20}
    for name in ("shop.t", "shop.u"):
        properties = {"hoodie.index.type": "SIMPLE"}  # writes look for keys in their own partitions
        keyed: dict[str, Any] = {"record_key": ["id"], "partition_by": ["day"], "table_type": "mor", "properties": properties}
        made = lakehouse.create_table(name, schema=schema, **keyed)
        made.bulk_insert(pa.table(batch, schema=schema))
        made.upsert(pa.table({**batch, "s": ["y"] * 20}, schema=schema).slice(0, 8))
    return lakehouse


QUERIES = [
    "select id, s from shop.t where day = 'd1'",
    "select count(*) as c from shop.t",
    "select s from shop.t where day in ('d0', 'd3') and n > 3",
    "select t.id, u.s from shop.t join shop.u on t.id = u.id where t.day = 'd2' and u.day > 'd1'",
    "select u.id from shop.u left join shop.t on u.id = t.id and t.n < 10 where t.day is null",
    "select u.id, t.s from shop.u left join shop.t on u.id = t.id where t.day <> 'd2'",
    "select id from shop.t where day = 'd1' union all select n from shop.t where day = 'd2'",
    "select day, sum(n) as n from shop.t where not day = 'd3' group by all",
    "with x as (select * from shop.t where day = 'd0') select id from x where s = 'y'",
    "select id from shop.u where exists (select 1 from shop.t where t.id = u.id and day = 'd1')",
    "select t.* from shop.t, shop.u where t.id = u.id and u.day = 'd1'",
    "select id from shop.v where s = 'y'",
    "select * from (select day, n, s from shop.t) pivot (sum(n) for s in ('x', 'y'))",
]


@pytest.mark.parametrize("query", QUERIES)
def test_statements_have_the_rows_that_they_have_over_everything(query: str, days: Lakehouse, spark: SparkSession) -> None:
    for name in ("t", "u"):
        spark.createDataFrame(days.table(f"shop.{name}").to_arrow()).createOrReplaceTempView(f"whole_{name}")
    view = "select id, s from shop.t where day = 'd2'"
    days.sql(f"create view shop.v as {view}")
    whole = query.replace("shop.v", f"({view})").replace("shop.t", "whole_t as t").replace("shop.u", "whole_u as u")
    assert_same_rows(days.sql(query).toArrow(), spark.sql(whole).toArrow())


def test_a_condition_on_the_partition_decodes_its_logs_only(days: Lakehouse, spark: SparkSession, decoded_here: list[str]) -> None:
    table = days.table("shop.t")
    for day in ("d0", "d2", "d3"):
        damage(table, day, "day")
    for query in ("select id from shop.t where day = 'd1'", "select count(*) from shop.t where day = 'd1' and s = 'y'"):
        assert days.sql(query).collect()
    assert len(set(decoded_here)) <= 1
    days.sql("update shop.t set n = 100 where day = 'd1' and id = 1")
    days.sql("delete from shop.t where day = 'd1' and id = 5")
    days.sql(
        "merge into shop.t as t using (select 9 as id) as s on t.id = s.id and t.day = 'd1' when matched then update set s = 'merged'"
    )
    rest = table.to_arrow(["id", "n", "s"], filters=pc.field("day") == "d1").sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rest] == [(1, 100, "y"), (9, 9, "merged"), (13, 13, "x"), (17, 17, "x")]
    with pytest.raises(Exception, match=r"CorruptLogError|lost rows"):
        days.sql("select sum(n) from shop.t").collect()


def test_a_statement_that_writes_what_it_cannot_read_raises_the_engines_error(days: Lakehouse) -> None:
    table = days.table("shop.t")
    log = damage(table, "d1", "day")
    with pytest.raises(CorruptLogError) as caught:
        days.sql("update shop.t set n = n + 1")
    assert caught.value.context["path"].endswith(log.name)
    with pytest.raises(CorruptLogError):
        days.sql("create table shop.copy as select id from shop.t")
    assert [write.action for write in table.timeline.completed().writes()] == ["deltacommit"] * 2


def test_a_column_that_was_held_needless_fails_the_query_rather_than_being_null(table: HoodieTable, spark: SparkSession) -> None:
    frame = shared_scan(spark, plan_query(table.state, Query()), named=frozenset({"id"}), options=EXECUTORS)
    assert frame.columns == table.schema.names
    assert frame.select("id").count() == 100
    assert frame.select(count("*")).collect()[0][0] == 100
    with pytest.raises(Exception, match="the column name was not read"):
        frame.select("name").collect()
