"""A value that its column cannot hold is refused by every statement, also where the session's casts make something else of it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import SchemaIncompatibleError

STATEMENTS = [
    "insert into a.t values (2, 99999999999, null)",
    "insert into a.t by name select 2 as id, 1e300d as n",
    "insert into a.t values (99999999999, 5, null)",
    "update a.t set n = 99999999999",
    "update a.t set n = id + 99999999999",
    "update a.t set n = abs(-99999999999)",
    "update a.t set st.f = n + 99999999999",
    "merge into a.t t using (select 1 as id, 99999999999 as n, null as st) s on t.id = s.id when matched then update set *",
    "merge into a.t t using (select 1 as id, 99999999999 as n) s on t.id = s.id when matched then update set n = s.n",
    "merge into a.t t using (select 2 as id, 'x' as n, null as st) s on t.id = s.id when not matched then insert *",
]


@pytest.fixture(params=["true", "false"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", request.param)
    return session


def _table(session: SparkSession, where: str) -> Lakehouse:
    lakehouse = Lakehouse(where, spark=session)
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("st", pa.struct([("f", pa.int32())]))])
    table = lakehouse.create_table("a.t", schema=schema, record_key=["id"])
    table.insert(pa.Table.from_pylist([{"id": 1, "n": 1, "st": {"f": 1}}], schema=schema))
    return lakehouse


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_value_that_does_not_fit_is_refused(session: SparkSession, tmp_path: object, statement: str) -> None:
    lakehouse = _table(session, str(tmp_path))
    refusals = r"cannot be stored as int|CAST_OVERFLOW|CAST_INVALID_INPUT"
    with pytest.raises((SchemaIncompatibleError, PySparkException), match=refusals) as raised:
        lakehouse.sql(statement)
    # Where the session's own casts refuse them nobody looks at each value twice.
    assert isinstance(raised.value, SchemaIncompatibleError) or session.conf.get("spark.sql.ansi.enabled") == "true"
    assert lakehouse.table("a.t").to_arrow().to_pylist() == [{"id": 1, "n": 1, "st": {"f": 1}}]


def test_values_that_fit_are_cast(session: SparkSession, tmp_path: object) -> None:
    lakehouse = _table(session, str(tmp_path))
    lakehouse.sql("insert into a.t values ('2', 2.5d, null)")
    lakehouse.sql("update a.t set n = n + 1L, st.f = abs(-7L)")
    lakehouse.sql("merge into a.t t using (select 3L as id, '4' as n, null as st) s on t.id = s.id when not matched then insert *")
    rows = sorted(lakehouse.table("a.t").to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["n"]) for row in rows] == [(1, 2), (2, 3), (3, 4)]
    assert rows[0]["st"] == {"f": 7}
