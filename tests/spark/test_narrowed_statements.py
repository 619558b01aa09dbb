"""What a statement's conditions spare: other partitions, files and logs, never a row; and what EXPLAIN tells of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.files import checked, slice_reader
from lakehouse_engine.read.skipping import skipped_slices
from lakehouse_engine.sql.binding.condition import row_condition
from tests.spark.test_partition_discovery import files_opened
from tests.spark.unnarrowed import assert_same_unnarrowed
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64()), ("s", pa.string())])
DAYS = ["d0", "d1", "d2", "d3", None]


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    """`shop.c` (copy-on-write) and `shop.m` (merge-on-read, logs in two partitions) of five days, of two commits; views over them."""
    lakehouse = Lakehouse(str(tmp_path / "w"), spark=spark)
    lakehouse.create_schema("shop")
    numbers = list(range(40))
    columns = {"id": numbers, "day": [DAYS[one % 5] for one in numbers], "n": [None if one % 7 == 0 else one for one in numbers]}
    rows = pa.table({**columns, "s": ["x"] * 40}, schema=SCHEMA)
    for name, kind in (("shop.c", "cow"), ("shop.m", "mor")):
        made = lakehouse.create_table(
            name, schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type=kind, properties={"hoodie.index.type": "SIMPLE"}
        )
        made.bulk_insert(rows)
        changed = rows.filter(pc.field("day").isin(["d1", "d2"])).slice(0, 9)
        made.upsert(changed.set_column(3, "s", pa.array(["y"] * changed.num_rows)))
    lakehouse.create_view("shop.v", "select id, day as d, n, upper(s) as s from shop.m where id >= 0")
    lakehouse.create_view("shop.days", "select day, count(*) as c, sum(n) as n from shop.m group by day")
    lakehouse.create_view("shop.newest", "select * from (select *, row_number() over (partition by s order by id) as r from shop.m)")
    return lakehouse


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Partitions of the slices whose logs this process decoded."""
    found, original = list[str](), slice_reader.scan_logs

    def counted(storage: Any, piece: Any, *arguments: Any, **named: Any) -> Any:
        found.append(piece.slice.partition_path)
        return original(storage, piece, *arguments, **named)

    monkeypatch.setattr(slice_reader, "scan_logs", counted)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "select id from shop.m where day = 'd1'",
        "select id from (select id, day from shop.m) x where x.day = 'd1'",
        "with x as (select * from shop.m), y as (select id, day as d from x) select id from y where d in ('d1', 'd0')",
        "select id from shop.v where d = 'd1'",
        "select n from shop.days where day between 'd0' and 'd1'",
        "select id from shop.m version as of '-1' where day = 'd0' or day = 'd1'",
        "select count(*) from (select * from hudi_table_changes('shop.m', 'latest_state', 'earliest')) where day = 'd1'",
        "select c.id from shop.c join shop.v on c.id = v.id where v.d = 'd1' and c.day = 'd1'",
    ],
)
def test_logs_of_other_partitions_are_not_decoded(text: str, shop: Lakehouse, decoded: list[str]) -> None:
    shop.sql(text).collect()
    assert set(decoded) <= {"day=d1"}
    if "version as of" not in text:
        assert decoded


def test_files_that_have_no_such_key_are_not_given_to_spark(shop: Lakehouse) -> None:
    assert files_opened(shop.sql("select s from shop.c where id = 0")) == 1
    assert files_opened(shop.sql("select s from shop.c where id = 0 or s is not null")) == 5
    assert shop.sql("select day from shop.c where n = 12 and id = 12").collect()[0][0] == "d2"
    assert files_opened(shop.sql("select s from (select * from shop.c version as of '-1') where id = 9000")) == 0


def test_files_under_logs_are_given_to_spark_where_their_own_rows_are_wanted(shop: Lakehouse) -> None:
    """Rows of logs are there anyway, and which rows they replace is known."""
    assert files_opened(shop.sql("select s from shop.m where id = 0")) == 1
    assert files_opened(shop.sql("select s from shop.m where s = 'y'")) == 0
    assert files_opened(shop.sql("select s from shop.m where s = 'x'")) == 5
    for text in ("n = 12", "s = 'y'", "s = 'x'", "id < 12 and s = 'y'", "s <> 'x' or id = 0", *(f"id = {number}" for number in range(12))):
        asked = "select id, day, n, s from shop.{0} where {1}"
        assert_same_rows(shop.sql(asked.format("m", text)).toArrow(), shop.sql(asked.format("c", text)).toArrow())


def test_checksums_are_looked_at_where_the_statement_reads(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, original = list[str](), checked.check_headers

    def counted(storage: Any, path: str) -> Any:
        looked.append(path.partition("/")[0])
        return original(storage, path)

    monkeypatch.setattr(checked, "check_headers", counted)
    shop.sql("select s from shop.c where id = 0").collect()
    assert looked == ["day=d0"]
    shop.sql("select id from shop.v where d in ('d1', 'd3')").collect()
    assert sorted(looked) == ["day=d0", "day=d1", "day=d3"]


def explained(shop: Lakehouse, text: str) -> str:
    [row] = shop.sql(f"explain {text}").collect()
    assert row.asDict().keys() == {"plan"}
    return str(row["plan"])


def test_explain_tells_what_each_reading_leaves_out_and_agrees_with_the_files_of_the_same_condition(shop: Lakehouse) -> None:
    text = "day in ('d1', 'd3') and id < 9"
    plan = explained(shop, f"select id from shop.m where {text}")
    assert plan.index("== Physical Plan ==") < plan.index("== Tables ==")
    state = shop.table("shop.m").state
    slices = skipped_slices(state, row_condition(text, SCHEMA))
    kept = [piece for piece, reason in slices if reason is None]
    bases = sum(piece.base_file is not None for piece in kept)
    assert f"partitions: {len(kept)} of 5" in plan
    assert f"base files: {bases} of 5" in plan
    by_partition = sum(reason == "partition" for _, reason in slices)
    assert f"({by_partition} ruled out by partition" in plan
    logs = sum(len(piece.log_files) for piece in kept)
    assert f"log files: {logs} of {sum(len(piece.log_files) for piece, _ in slices)}" in plan
    assert "decoded by the driver" in plan


def test_explain_has_each_reading_and_says_where_nothing_was_asked(shop: Lakehouse) -> None:
    plan = explained(shop, "formatted select * from shop.c join shop.m version as of '-1' as m on c.id = m.id where c.day = 'd0'")
    assert "shop.c (snapshot as of" in plan
    assert "shop.m (snapshot as of" in plan
    assert "condition: (day == \"d0\")" in plan
    assert "condition: none that is asked before Spark does" in plan
    assert "FileScan" in plan or "Scan parquet" in plan


def test_explain_of_what_is_no_reading_of_the_warehouse_is_sparks(shop: Lakehouse) -> None:
    assert "== Tables ==" not in explained(shop, "select 1")


PREDICATES = [
    "{a}day = 'd1'", "{a}day in ('d0', 'd2')", "{a}day <> 'd1'", "{a}day is null", "{a}day is not null", "{a}day > 'd1'",
    "{a}day between 'd1' and 'd2'", "{a}n > 20", "{a}id = 7", "{a}id in (1, 2, 3)", "not ({a}day = 'd1')", "{a}day not in ('d1', 'd2')",
    "{a}n is null", "{a}day <=> null", "({a}day = 'd1' or {a}id < 10)", "({a}day = 'd1' and {a}n < 30)", "coalesce({a}day, 'd1') = 'd1'",
    "{a}day = {a}day", "case when {a}id > 3 then {a}day = 'd2' else true end", "{a}s = 'y'", "{a}day not between 'd1' and 'd2'",
]  # fmt: skip


def condition(chance: random.Random, alias: str = "") -> str:
    a = f"{alias}." if alias else ""
    parts = [chance.choice(PREDICATES).format(a=a) for _ in range(chance.randint(1, 3))]
    text = parts[0]
    for part in parts[1:]:
        text = f"{text} {chance.choice(['and', 'and', 'or'])} {part}"
    return f"not ({text})" if chance.random() < 0.1 else text


def source(chance: random.Random, depth: int = 0) -> str:
    """A relation with the columns id, day, n and s."""
    table = chance.choice(["shop.c", "shop.m", "shop.m", "shop.m version as of '-1'"])
    kind = chance.randrange(9 if depth < 2 else 1)
    if kind <= 1:
        return table
    inner = f"{source(chance, depth + 1)} as q{depth}"
    where = f" where {condition(chance, f'q{depth}')}" if chance.random() < 0.5 else ""
    columns = chance.choice(["*", "id, day, n, s", f"q{depth}.id, q{depth}.day, n as n, upper(s) as s", "id, upper(day) as day, n, s"])
    if kind == 2:
        return f"(select {columns} from {inner}{where} order by id limit 12)"
    if kind == 3:
        return f"(select day, max(id) as id, sum(n) as n, min(s) as s from {inner}{where} group by day)"
    if kind == 4:
        return f"(select id, day, rank() over (order by id) as n, s from {inner}{where})"
    if kind == 5:
        return f"(select {columns} from {inner}{where} union all select id, s as day, n, day as s from shop.m)"
    if kind == 6:
        join = chance.choice(["left", "right", "full", "inner"])
        return f"(select q{depth}.id, j.day, q{depth}.n, j.s from {inner} {join} join shop.c j on q{depth}.id = j.id + 1{where})"
    if kind == 7:
        return f"(select id, s as day, n, day as s from {inner}{where})"
    return f"(select {columns} from {inner}{where})"


def statement(chance: random.Random) -> str:
    kind = chance.randrange(5)
    if kind == 0:
        uses = f"select id, day from w where {condition(chance)} union all select id, day from w where {condition(chance)}"
        return f"with w as (select * from {source(chance)}) {uses}"
    if kind == 1:
        return f"with w as (select * from {source(chance)}) select a.id, a.day, a.n from w as a where {condition(chance, 'a')}"
    if kind == 2:
        join = chance.choice(["left", "right", "full", "inner", "left semi", "left anti"])
        on = f"from {source(chance)} a {join} join {source(chance)} b on a.id = b.id"
        return f"select a.id, a.day {on} where {condition(chance, 'a')}"
    if kind == 3:
        inner = f"select 1 from {source(chance)} b where b.id = a.id and {condition(chance, 'b')}"
        return f"select id, n from {source(chance)} a where {chance.choice(['', 'not '])}exists ({inner}) and {condition(chance, 'a')}"
    view = chance.choice(["select id, d as x from shop.v as a where {0}", "select c as id, n as x from shop.days as day where {1}",
                          "select id, day as x from shop.newest as a where {1} and r = 1"])  # fmt: skip
    return view.format(condition(chance).replace("day", "d"), condition(chance).replace("{a}s", "day"))


@pytest.mark.parametrize("seed", range(4))
def test_random_statements_have_the_rows_that_they_have_unnarrowed(
    seed: int, shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    # Spark refuses names that are ambiguous, or of another type.
    assert_same_unnarrowed(shop, (statement(chance) for _ in range(15)), AnalysisException, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "select id from {0} a where id in (select id from {0} where s = 'y')",
        "select id from {0} a where id not in (select id from {0} where s = 'y')",
        "select id from {0} a where exists (select 1 from {0} b where b.n > a.n and b.s = 'y')",
        "select id, (select count(*) from {0} b where b.id = a.id) as c from {0} a where s = 'y'",
        "select a.id, l.c from {0} a, lateral (select count(*) as c from {0} b where b.day = a.day and b.s = a.s) l",
        "select a.id, b.s from {0} a left join {0} b on a.id = b.id + 1 and b.s = 'y'",
        "select day, s, count(*) as c from {0} group by cube (day, s)",
        "select id from {0} where s = 'y' union all select id from {0} where n > (select avg(n) from {0})",
        "select id, row_number() over (partition by day order by id) as r from {0} where s = 'x' order by id limit 7",
        "with recursive t as (select min(id) as i from {0} union all select a.id from t join {0} a on a.id = i + 1 where i < 8) from t",
    ],
)  # fmt: skip
def test_a_table_with_logs_may_stand_wherever_another_may(text: str, shop: Lakehouse) -> None:
    """The filter on replaced rows is a subquery in each of them."""
    assert_same_rows(shop.sql(text.format("shop.m")).toArrow(), shop.sql(text.format("shop.c")).toArrow())
