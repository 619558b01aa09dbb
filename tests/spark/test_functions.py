"""Stored functions in statements: queries, views, and statements that change rows."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.functions import Language, Parameter, StoredFunction
from lakehouse_engine.errors import ConstraintError, SqlError, UnsupportedSqlError

BIG = Parameter("x", "bigint")
TWICE = StoredFunction(Language.SQL, (BIG,), "bigint", "x * 2")
ADD = StoredFunction(Language.SQL, (BIG, Parameter("y", "bigint", "10")), "bigint", "select x + y")
SPREAD = StoredFunction(Language.SQL, (BIG,), "bigint", "max(x) - min(x)", aggregate=True)
PYTHON = StoredFunction(
    Language.PYTHON, (BIG, Parameter("y", "bigint", "100")), "bigint", "K = 1\ndef f(x, y):\n    return x + y + K\n", entry_point="f"
)
LONGEST = StoredFunction(
    Language.PYTHON,
    (Parameter("text", "string"), Parameter("n", "int")),
    "string",
    "class Longest:\n"
    "    def __init__(self):\n        self.found = ''\n"
    "    def accumulate(self, text, n):\n        self.found = max(self.found, text * n, key=len)\n"
    "    def finish(self):\n        return self.found\n",
    aggregate=True,
    entry_point="Longest",
)


@pytest.fixture
def house(lakehouse: Lakehouse) -> Lakehouse:
    functions = {"twice": TWICE, "add": ADD, "spread": SPREAD, "python": PYTHON, "longest": LONGEST}
    for name, function in functions.items():
        lakehouse.create_function(f"shop.{name}", function)
    lakehouse.sql("create table shop.t (id bigint, v bigint) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.t values (1, 1), (2, 5), (3, 9)")
    return lakehouse


def rows(house: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in house.sql(text).collect())


def test_queries_call_them_with_and_without_tables(house: Lakehouse) -> None:
    assert rows(house, "select shop.twice(4), SHOP.`Twice`(shop.twice(1)), shop.add(1), shop.add(1, 2)") == [(8, 4, 11, 3)]
    assert rows(house, "select id, shop.python(v) from shop.t where shop.python(v, y => 0) > 2") == [(2, 106), (3, 110)]
    assert rows(house, "select id from shop.t where shop.twice(id) = 4") == [(2,)]
    assert house.sql("select shop.twice(1)").columns == ["shop.twice(1)"]


def test_aggregates_are_of_groups(house: Lakehouse) -> None:
    assert rows(house, "select id = 1, shop.spread(shop.twice(v)), shop.spread(id) from shop.t group by id = 1") == [
        (False, 8, 1),
        (True, 0, 0),
    ]
    assert rows(house, "select shop.longest(cast(v as string), cast(id as int)) from shop.t") == [("999",)]


def test_views_keep_their_text_and_statements_change_rows(house: Lakehouse) -> None:
    house.sql("create view shop.v as select id, shop.twice(v) as w from shop.t")
    assert house.view("shop.v").sql == "select id, shop.twice(v) as w from shop.t"
    house.sql("update shop.t set v = shop.add(v) where shop.twice(id) >= 4")
    assert rows(house, "select * from shop.v") == [(1, 2), (2, 30), (3, 38)]
    house.sql("delete from shop.t where shop.python(id, 0) = 4")
    house.sql("insert into shop.t select shop.add(id), shop.twice(w) from shop.v where id = 1")
    assert rows(house, "select * from shop.t") == [(1, 1), (2, 15), (11, 4)]
    when = "when matched and shop.twice(s.id) = 4"
    house.sql(f"merge into shop.t using (select 2 as id) s on t.id = s.id {when} then update set v = shop.add(t.v)")
    house.create_function("shop.twice", StoredFunction(Language.SQL, (BIG,), "bigint", "x * 3"))
    assert rows(house, "select * from shop.v") == [(1, 3), (2, 75), (11, 12)]


def test_another_session_has_them_and_sees_them_replaced(house: Lakehouse) -> None:
    other = Lakehouse(house.warehouse, spark=house._spark)
    assert rows(other, "select shop.twice(2)") == [(4,)]
    house.create_function("shop.twice", StoredFunction(Language.PYTHON, (BIG,), "bigint", "f = lambda x: x - 1", entry_point="f"))
    assert rows(other, "select shop.twice(2)") == [(1,)]
    house.create_function("shop.twice", TWICE)
    assert rows(other, "select shop.twice(2)") == rows(house, "select shop.twice(2)") == [(4,)]
    house.drop_function("shop.twice")
    with pytest.raises(AnalysisException, match="shop"):
        rows(other, "select shop.twice(2)")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (StoredFunction(Language.SQL, (), "bigint", "select max(id) from shop.t"), UnsupportedSqlError, "join the table"),
        (StoredFunction(Language.SQL, (), "bigint", "shop.wrong()"), SqlError, r"calls itself: shop\.wrong -> shop\.wrong"),
        (StoredFunction(Language.SQL, (BIG,), "bigint", "shop.twice(x, 1)"), SqlError, r"given 2 argument\(s\)"),
        (StoredFunction(Language.SQL, (BIG,), "bigint", "y + 1"), AnalysisException, "y"),
        (StoredFunction(Language.SQL, (BIG,), "bigint", "max(y)", aggregate=True), AnalysisException, "y"),
        (StoredFunction(Language.SQL, (BIG,), "bigint", "max(x)"), PySparkException, "aggregate"),
        (StoredFunction(Language.PYTHON, (), "int", "def f(:", entry_point="f"), SqlError, "does not run: SyntaxError"),
        (StoredFunction(Language.PYTHON, (), "int", "raise KeyError(1)", entry_point="f"), SqlError, "does not run: KeyError"),
        (StoredFunction(Language.PYTHON, (), "int", "g = 1", entry_point="f"), SqlError, "defines no f"),
        (StoredFunction(Language.PYTHON, (BIG,), "int", "def f(x): pass", aggregate=True, entry_point="f"), SqlError, "accumulate"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_stored(
    house: Lakehouse, function: StoredFunction, error: type[Exception], message: str
) -> None:
    if "itself" in message:
        house.create_function("shop.wrong", TWICE)
    with pytest.raises(error, match=message):
        house.create_function("shop.wrong", function)
    assert ("shop.wrong" in house.functions("shop")) == ("itself" in message)


def test_calls_that_an_aggregate_in_sql_has_no_place_for_are_refused(house: Lakehouse) -> None:
    for arguments in ("distinct v", "x => v"):
        with pytest.raises(UnsupportedSqlError, match="plain arguments"):
            house.sql(f"select shop.spread({arguments}) from shop.t")
    with pytest.raises(SqlError, match=r"given 0 argument\(s\)"):
        house.sql("select shop.spread() from shop.t")


def test_files_in_a_body_are_refused_where_statements_may_not_read_them(house: Lakehouse) -> None:
    strict = Lakehouse(house.warehouse, spark=house._spark.newSession(), allow_files=False)
    with pytest.raises(UnsupportedSqlError):
        strict.create_function("shop.read", StoredFunction(Language.SQL, (), "string", "select max(value) from text.`/etc/hostname`"))


def test_conditions_of_replace_where_call_them(house: Lakehouse) -> None:
    house.sql("insert into shop.t replace where shop.twice(v) > 9 and shop.python(t.id, 0) < 4 select 2, shop.twice(5)")
    assert rows(house, "select * from shop.t") == [(1, 1), (2, 10), (3, 9)]
    with pytest.raises(ConstraintError, match=r"shop\.twice\(v\) > 9: a row to be written is none"):
        house.sql("insert into shop.t replace where shop.twice(v) > 9 select 4, 4")
    with pytest.raises(AnalysisException):
        house.sql("insert into shop.t replace where shop.spread(v) > 9 select 4, 4")
    assert rows(house, "select * from shop.t") == [(1, 1), (2, 10), (3, 9)]
