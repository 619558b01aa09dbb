"""Bound statements give what the originals gave: every query of the corpus that Spark accepts, executed both ways.

The originals run over catalog tables. Then those are dropped, so that a read that was not bound fails, and the bound texts run
over temporary views of copies.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine.sql.binding.bind import Pin, bind
from tests.spark.corpus.queries import QUERIES as WRITTEN
from tests.support import connect_server
from tests.unit.sql.corpus import BOUND, PAIRS, statement

pytestmark = pytest.mark.spark

COLUMNS = "id int, x int, y int, ts timestamp, s string, xs array<int>, m map<string, int>, st struct<z: int>"
TABLES = {"`a`.`b`": 5, "`a`.`c`": 3, "`d`.`b`": 4, "`a`.`2ef`": 2, "`from`.`select`": 2}
FOREIGN = {"`z`.`y`": 2}
EXECUTED_AT_LEAST = 140
"""Of the binding's own corpus, in which many a statement is there for its form only. Of the other one all are."""

EXTRA = [
    "select a.b.st.z, b.st.z, st.z from a.b where a.b.st.z > 1",
    "select a.b.m['k'], a.b.xs[0] from a.b order by a.b.id",
    "select a.b.id, d.b.id from a.b, d.b where a.b.id = d.b.id",
    "select a.b.id, a.b.x, d.b.id from a.b join d.b on a.b.id = d.b.id where exists (select 1 from a.c where a.c.id = a.b.id)",
    "select t.st.z from a.b t union all select a.c.st.z from a.c",
    "with b as (select id + 100 as id from a.c) select b.id, a.b.id from b join a.b on b.id > a.b.id",
    "with a as (select named_struct('id', 7) as b) select a.b.id from a",
    "select (select max(a.c.id) from a.c where a.c.id <= a.b.id) as m from a.b",
    "select id, (select count(*) from a.b i where i.id < o.id) from a.b o",
    "select * from (select id from a.b where id > (select min(id) from a.c)) t where t.id in (select a.b.id from a.b)",
    "select id from a.b where id in (select id from a.c where id in (select id from d.b))",
    "select a.b.id, l.n from a.b, lateral (select a.b.id + 1 as n) l",
    "select * from a.b natural join a.c",
    "select count(*) from a.b, a.c, d.b e, values (1), (2) as v(k)",
    "select a.c.*, a.b.id from a.b left join a.c using (id)",
    "select id, row_number() over (partition by a.b.x order by a.b.id) from a.b",
    "select id, x from a.b pivot (sum(y) for x in (10, 20))",
    "select 'a.b', \"from a.c\", id from a.b -- from a.c",
    "select aggregate(xs, 0, (acc, e) -> acc + e) from a.b",
    "select id from a.b group by a.b.id having max(a.b.x) > 10 order by a.b.id desc limit 2",
    "select a.b.id as `a.b`, `a`.`b`.`x` from `a`.`b`",
    "select if(exists (from a.c where a.c.id = 99), 'x', 'y') from a.b tablesample (100 percent)",
    "select * from a.b tablesample (100 percent) t join a.c tablesample (100 percent) using (id)",
]
QUERY_STARTS = ("select", "with", "from", "table", "(", "values")
QUERIES = [
    text
    for text in [*(statement(marked) for marked in BOUND), *(text for text, _ in PAIRS.values()), *EXTRA]
    if text.lstrip("/").lower().startswith(QUERY_STARTS) and " insert " not in text
]
OWN = "the binding's own corpus"
PART = 81
WRITTEN_PARTS = {f"queries from {start}": WRITTEN[start : start + PART] for start in range(0, len(WRITTEN), PART)}
PARTS = {OWN: QUERIES, **WRITTEN_PARTS}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    if connect_server.WANTED:
        pytest.skip("not over Spark Connect: it has a session of its own settings")
    folder = tmp_path_factory.mktemp("sql-binding")
    builder = SparkSession.builder.master("local[1]").appName("sql-binding")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate().newSession()
    # Three hundred tiny queries: compiling each one would take most of the time.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return session


def result(spark: SparkSession, text: str) -> tuple[list[str], list[str]] | None:
    """Column names and sorted rows; None when Spark refuses the statement."""
    try:
        frame = spark.sql(text, args={"id": 1, "y": 10}) if ":id" in text else spark.sql(text)
        return frame.columns, sorted(map(str, frame.collect()))
    except PySparkException:
        return None


def source(count: int, offset: int) -> str:
    return (
        f"select id, id * 10 x, id * 7 + {offset} y, timestamp '2026-01-01' + make_interval(0, 0, 0, id) ts, concat('s', id) s, "
        f"array(id, id + 1) xs, map('k', id) m, named_struct('z', id) st from (select cast(id + 1 as int) id from range({count}))"
    )


def view_name(pin: Pin) -> str:
    assert pin.as_of is None
    assert pin.changes is None
    return "__pin_" + "_".join(part.lower().replace(" ", "_") for part in pin.parts)


def test_the_corpora_are_as_large_as_they_are_said_to_be() -> None:
    assert len({*QUERIES, *WRITTEN}) >= 400 + len(QUERIES) - EXECUTED_AT_LEAST


@pytest.mark.parametrize("part", PARTS)
def test_bound_queries_give_the_rows_of_the_originals(spark: SparkSession, tmp_path: Path, part: str) -> None:
    queries = PARTS[part]
    for schema in ("a", "d", "`from`", "z"):
        spark.sql(f"create schema {schema}")
    try:
        for offset, (name, count) in enumerate({**TABLES, **FOREIGN}.items()):
            spark.sql(f"create table {name} using parquet location '{tmp_path}/t{offset}' as {source(count, offset)}")
        originals = {text: found for text in queries if (found := result(spark, text)) is not None}
        for offset, name in enumerate(TABLES):
            spark.sql(f"drop table {name}")
            view = "__pin_" + name.replace("`", "").replace(".", "_").replace(" ", "_")
            spark.read.parquet(f"{tmp_path}/t{offset}").createOrReplaceTempView(f"`{view}`")
        known = {tuple(name.replace("`", "").split(".")) for name in TABLES}
        bound = {text: bind(text, lambda parts: tuple(p.lower() for p in parts) in known, view_name).text for text in originals}
        wrong = [bound[text] for text, wanted in originals.items() if result(spark, bound[text]) != wanted]
    finally:
        for schema in ("a", "d", "`from`", "z"):
            spark.sql(f"drop schema if exists {schema} cascade")
    assert wrong == []
    refused = [text for text in queries if text not in originals]
    assert len(originals) >= EXECUTED_AT_LEAST if part == OWN else not refused, f"Spark did not accept {len(refused)}: {refused}"
