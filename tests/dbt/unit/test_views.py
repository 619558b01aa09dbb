"""Session views: who reads all of one gets its query, Spark learns of it where it may be named otherwise; no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.lakehouse.work.views import SessionViews


class Frame:
    def __init__(self, spark: Spark, sql: str) -> None:
        self.spark, self.sql = spark, sql

    def createOrReplaceTempView(self, name: str) -> None:
        self.spark.views[name.strip("`")] = self


class Spark:
    def __init__(self) -> None:
        self.views: dict[str, Frame] = {}
        self.dropped: list[str] = []
        self.catalog = SimpleNamespace(dropTempView=self._drop)

    def _drop(self, name: str) -> None:
        self.dropped.append(name)
        self.views.pop(name, None)


class House:
    """A warehouse; `pinned` gives another reading of it."""

    def __init__(self, spark: Spark, asked: list[str] | None = None) -> None:
        self.session, self.asked = spark, asked if asked is not None else []

    def pinned(self) -> House:
        return House(self.session, self.asked)

    def sql(self, text: str) -> Frame:
        self.asked.append(text)
        return Frame(self.session, text)


@pytest.fixture
def house() -> House:
    return House(Spark())


def keep(views: SessionViews, name: str, sql: str, house: House) -> None:
    views.keep(name, sql, lambda reading: views.rows(sql, reading), house)


def read(views: SessionViews, sql: str, house: House) -> Any:
    return views.rows(sql, views.as_read(sql, house))


@pytest.mark.parametrize("text", ["select * from `M__dbt_tmp`", "select * from m__DBT_tmp", " SELECT * from `m__dbt_tmp`\n"])
def test_all_rows_of_a_view_are_its_query_which_is_analysed_once_and_needs_no_name(house: House, text: str) -> None:
    views = SessionViews()
    keep(views, "M__dbt_tmp", "select 1 as id", house)
    assert read(views, text, house).sql == "select 1 as id"
    assert house.asked == ["select 1 as id"]
    assert house.session.views == {}
    assert views.drop_unseen("m__dbt_tmp")
    assert house.asked == ["select 1 as id"]


@pytest.mark.parametrize(
    "text", ["select id from `m__dbt_tmp`", "select * from `m__dbt_tmp` where id > 1", "select * from identifier('m__' || 'dbt_tmp')"]
)
def test_before_any_other_statement_spark_learns_of_the_view(house: House, text: str) -> None:
    views = SessionViews()
    keep(views, "m__dbt_tmp", "select 1 as id", house)
    assert read(views, text, house).sql == text
    assert house.session.views["m__dbt_tmp"].sql == "select 1 as id"
    assert not views.drop_unseen("m__dbt_tmp")
    views.drop("m__dbt_tmp", house)
    assert house.session.dropped == ["m__dbt_tmp"]
    assert house.session.views == {}


def test_a_view_of_a_view_is_the_same_query(house: House) -> None:
    views = SessionViews()
    views.keep("__dbt_python_m", "", lambda reading: reading.sql("python"), house)
    keep(views, "m__dbt_tmp", "select * from `__dbt_python_m`", house)
    assert read(views, "select * from `m__dbt_tmp`", house).sql == "python"
    assert house.asked == ["python"]


def test_views_that_are_made_anew_are_so_for_spark_too_from_one_reading(house: House) -> None:
    views = SessionViews()
    views.keep("a", "", lambda reading: reading.sql(f"a{len(house.asked)}"), house)
    keep(views, "b", "select * from a", house)
    views.show()
    before = views.as_read("select * from b", house)
    views.make_anew("select * from b", house)
    after = views.as_read("select * from b", house)
    assert after is not before
    assert read(views, "select * from b", house).sql == "a1"
    views.show()
    assert {name: frame.sql for name, frame in house.session.views.items()} == {"a": "a1", "b": "a1"}


def test_rows_of_another_reading_are_not_taken_for_this_one(house: House) -> None:
    views = SessionViews()
    keep(views, "a", "select 1", house)
    assert views.rows("select * from a", house.pinned()).sql == "select * from a"


def test_a_view_that_was_made_by_a_statement_is_dropped_as_it_was(house: House) -> None:
    views = SessionViews()
    assert not views.drop_unseen("theirs")
    views.drop("theirs", house)
    assert house.session.dropped == ["theirs"]


def test_hidden_views_are_gone_for_spark(house: House) -> None:
    views = SessionViews()
    keep(views, "my-model__dbt_tmp", "select 1", house)
    views.show()
    views.hide(house)
    assert house.session.dropped == ["my-model__dbt_tmp"]
    assert house.session.views == {}


def test_a_view_that_was_kept_again_leaves_nothing_of_its_old_rows_in_spark(house: House) -> None:
    views = SessionViews()
    for number in (1, 2):
        views.keep("v", f"select {number}", lambda warehouse, number=number: warehouse.sql(f"select {number}"), house)
        if number == 1:
            views.show()
    assert not views.drop_unseen("v")
    views.drop("v", house)
    assert house.session.views == {}
    views.keep("w", "select 1", lambda warehouse: warehouse.sql("select 1"), house)
    views.show()
    views.keep("w", "select 2", lambda warehouse: warehouse.sql("select 2"), house)
    views.hide(house)
    assert house.session.views == {}
