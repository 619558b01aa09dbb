"""Statements that change rows have the effect that plain Spark computes for them, on both types of tables."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.spark.corpus.changes import ALL, CHANGES

STRUCT = pa.struct([("f", pa.int32()), ("g", pa.string())])
SCHEMA = pa.schema([
    *(("id", pa.int32()), ("x", pa.int32()), ("s", pa.string()), ("day", pa.string())),
    *(("st", STRUCT), ("xs", pa.list_(pa.int32())), ("ts", pa.int64())),
])  # fmt: skip


def _rows(ids: list[int], shift: int) -> pa.Table:
    """Some rows with nulls of every kind."""
    texts = ["ann", "bob", None, "dee", "b\\w", ""]
    structs = [{"f": 1, "g": "one"}, {"f": None, "g": None}, None, {"f": 3, "g": None}, {"f": 2, "g": "two"}, {"f": 5, "g": ""}]
    lists = [[2, 3], [], None, [None, 1], [2], [7, 8, 9]]
    columns = [
        ids,
        [None if one % 6 == 4 else (one % 6) * 10 + shift for one in ids],
        [texts[(one + shift) % 6] for one in ids],
        [f"2026-01-0{one % 3 + 1}" for one in ids],
        [structs[(one + shift) % 6] for one in ids],
        [lists[(one + shift) % 6] for one in ids],
        [100 + shift] * len(ids),
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


BASE = _rows([1, 2, 3, 4, 5, 6], 0)
SOURCE = _rows([2, 3, 5, 77, 78], 1)
FAR = _rows([81, 82], 2)
CASES = [f"{kind}: {name}" for kind in ("cow", "mor") for name in CHANGES]


@pytest.fixture(scope="module")
def changed(root_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakehouse]:
    """One warehouse for all of them, with a table of each type."""
    lakehouse = Lakehouse(str(tmp_path_factory.mktemp("changes") / "warehouse"), spark=root_session)
    lakehouse.create_schema("shop")
    for kind in ("cow", "mor"):
        made = {"record_key": ["id"], "ordering_fields": ["ts"], "partition_by": ["day"], "table_type": kind}
        lakehouse.create_table(f"shop.{kind}", schema=SCHEMA, **made).bulk_insert(BASE)
    for view, rows in {"before": BASE, "src": SOURCE, "src_far": FAR}.items():
        root_session.createDataFrame(rows).createOrReplaceTempView(view)
    yield lakehouse
    for view in ("before", "src", "src_far"):
        root_session.catalog.dropTempView(view)


def _sorted(spark: SparkSession, text: str) -> list[str]:
    return sorted(str(tuple(row)) for row in spark.sql(text).collect())


@pytest.mark.parametrize("case", CASES)
def test_a_statement_has_the_effect_that_spark_computes(changed: Lakehouse, case: str) -> None:
    spark, (kind, _, name) = changed._spark, case.partition(": ")
    assert spark is not None
    statement, wanted = CHANGES[name]
    table = changed.table(f"shop.{kind}")
    table.insert_overwrite_table(BASE)
    newest = table.history()[0].instant
    expected = _sorted(spark, wanted)
    changed.sql(statement.replace("{t}", f"shop.{kind}").replace("{n}", kind))
    found = sorted(str(tuple(row)) for row in changed.sql(f"select {ALL} from shop.{kind}").collect())
    assert found == expected
    made = [one for one in changed.table(f"shop.{kind}").history() if one.instant > newest and one.action not in ("clean", "compaction")]
    assert len(made) <= 1, "a statement is one commit"


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len(CHANGES) >= 200
    assert len({text for text, _ in CHANGES.values()}) == len(CHANGES)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("day", ["string", "string generated always as (left(at, 10))"])
def test_rows_that_are_updated_into_another_partition_leave_the_old_one(lakehouse: Lakehouse, kind: str, index: str, day: str) -> None:
    lakehouse.sql(
        f"create table shop.moving (id int, at string, n int, day {day}) partitioned by (day)"
        f" tblproperties (primaryKey = 'id', type = '{kind}', 'hoodie.index.type' = '{index}', 'hoodie.bucket.index.num.buckets' = '2')"
    )
    lakehouse.sql("insert into shop.moving values (1, '2024-01-01 x', 1, '2024-01-01'), (2, '2024-01-01 x', 2, '2024-01-01')")
    lakehouse.sql("insert into shop.moving values (3, '2024-01-02 x', 3, '2024-01-02')")

    def stored() -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in lakehouse.sql("select id, left(at, 10), n, day from shop.moving").collect())

    given = "" if "generated" in day else ", day = '2024-01-02'"
    lakehouse.sql(f"update shop.moving set at = '2024-01-02 y', n = n + 10{given} where id <> 2 or rand() > 2")
    assert stored() == [(1, "2024-01-02", 11, "2024-01-02"), (2, "2024-01-01", 2, "2024-01-01"), (3, "2024-01-02", 13, "2024-01-02")]
    given = "" if "generated" in day else ", day = s.day"
    lakehouse.sql(
        "merge into shop.moving t using (select id, day, day || ' z' as at, 5 as n from values (1, '2024-01-03'), (2, '2024-01-01'),"
        f" (4, '2024-01-04') as v(id, day)) s on t.id = s.id when matched and s.id = 1 then update set at = s.at{given}"
        " when matched then update set * when not matched then insert * when not matched by source then delete"
    )
    assert stored() == [(1, "2024-01-03", 11, "2024-01-03"), (2, "2024-01-01", 5, "2024-01-01"), (4, "2024-01-04", 5, "2024-01-04")]
