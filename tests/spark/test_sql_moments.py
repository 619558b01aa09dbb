"""TIMESTAMP AS OF an expression: its value is what Spark says, and nothing else is taken for a moment."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.instant import parse_instant_time


@pytest.fixture
def twice(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.sql("create table shop.t (id int, x int) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.t values (1, 1)")
    lakehouse.sql("update shop.t set x = 2")
    return lakehouse


def test_expressions_choose_the_commit(twice: Lakehouse) -> None:
    first = parse_instant_time(twice.table("shop.t").history()[-1].instant)
    stamp = f"timestamp '{first:%Y-%m-%d %H:%M:%S.%f}'"
    for expression, wanted in {
        "current_timestamp()": [2],
        "current_timestamp() + interval 1 hour": [2],
        "date_add(current_date(), 2)": [2],
        "current_timestamp() - interval 1 day": [],
        "date_sub(current_date(), 1)": [],
        f"({stamp} + interval 0 seconds)": [1],
        f"cast({stamp} as timestamp)": [1],
        f"{stamp} - interval 1 millisecond": [],
        f"concat('{first:%Y%m%d}', '{first:%H%M%S}{first.microsecond // 1000:03d}')": [1],
    }.items():
        found = twice.sql(f"select t.x from shop.t timestamp as of {expression} where shop.t.id = 1 or t.id = 1").collect()
        assert [row[0] for row in found] == wanted, expression


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_typed_literal_is_in_the_sessions_time_zone_and_text_in_utc(twice: Lakehouse, zone: str) -> None:
    first = parse_instant_time(twice.table("shop.t").history()[-1].instant)
    local, session = first.astimezone(ZoneInfo(zone)), twice._spark
    assert session is not None
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        for moment in (f"timestamp '{local:%Y-%m-%d %H:%M:%S.%f}'", f"'{first:%Y-%m-%d %H:%M:%S.%f}'"):
            assert [row[0] for row in twice.sql(f"select x from shop.t timestamp as of {moment}").collect()] == [1], moment
            twice.sql(f"create or replace table shop.c clone shop.t timestamp as of {moment}")
            assert [row[0] for row in twice.sql("select x from shop.c").collect()] == [1], moment
            assert [row[0] for row in twice.sql(f"select x from hudi_read_optimized('shop.t', {moment})").collect()] == [1], moment
        moment = f"timestamp '{local:%Y-%m-%d %H:%M:%S.%f}'"  # of changes text is an instant
        for bounds, wanted in ((f"'earliest', {moment}", [1]), (moment, [2])):
            found = twice.sql(f"select x from hudi_table_changes('shop.t', 'latest_state', {bounds})").collect()
            assert [row[0] for row in found] == wanted, bounds
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


def test_an_expression_may_hold_parameters_with_names(twice: Lakehouse) -> None:
    text = "select x from shop.t timestamp as of current_timestamp() - make_interval(0, 0, 0, :days) where id = :id"
    assert twice.sql(text, {"days": 0, "id": 1}).collect()[0][0] == 2
    assert twice.sql(text, {"days": 2, "id": 1}).collect() == []


def test_bounds_of_changes_are_moments_in_any_form(twice: Lakehouse) -> None:
    first, second = reversed([entry.instant for entry in twice.table("shop.t").history()])
    twice.table("shop.t").savepoint(first, name="monday")
    after = f"timestamp '{parse_instant_time(first):%Y-%m-%d %H:%M:%S.%f}'"
    for bounds, wanted in {
        "'-1'": [2],
        "-1": [2],
        "'monday'": [2],
        "'earliest', 'monday'": [1],
        "'2020-01-01'": [2],
        "'2020-01-01', '2020-01-02'": [],
        "current_timestamp() - interval 1 day": [2],
        "date_sub(current_date(), 2), current_timestamp() + interval 1 hour": [2],
        f"{after} - interval 1 millisecond, {after} + interval 0 seconds": [1],
        f":since, '{second}'": [2],
    }.items():
        text = f"select x from hudi_table_changes('shop.t', 'latest_state', {bounds})"
        found = twice.sql(text, {"since": first}).collect()
        assert [row[0] for row in found] == wanted, bounds
    with pytest.raises(UnsupportedSqlError, match=r"hudi_table_changes.*rand\(\).* of type double"):
        twice.sql("select x from hudi_table_changes('shop.t', 'latest_state', rand())")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("uuid()", "another value"),
        ("rand()", "of type double"),
        ("x", "without columns"),
        ("nothing(1)", "nothing"),
        ("cast(null as timestamp)", "is null"),
        ("(select max(id) from shop.t)", "sub-query"),
    ],
)
def test_what_is_no_moment_is_refused_by_name(twice: Lakehouse, expression: str, said: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=said) as caught:
        twice.sql(f"select * from shop.t timestamp as of {expression}")
    assert f"TIMESTAMP AS OF {expression}" in str(caught.value)


def test_what_may_not_be_run_is_no_moment_either(twice: Lakehouse) -> None:
    guarded = Lakehouse(twice.warehouse, spark=twice._spark, allow_files=False)
    with pytest.raises(UnsupportedSqlError, match="reflect"):
        guarded.sql("select * from shop.t timestamp as of reflect('java.lang.System', 'getProperty', 'user.home')")
