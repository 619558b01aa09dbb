"""Statements on materialized views, as they are read."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.statements import (
    AlterMaterializedView,
    CreateMaterializedView,
    CreateTable,
    DropMaterializedView,
    Passthrough,
    RefreshMaterializedView,
)
from lakehouse_engine.sql.router import route

AB = ("a", "b")
QUERY = "select 1 as x"

READ = {
    f"create materialized view a.b as {QUERY}": CreateMaterializedView(CreateTable(AB, query=QUERY)),
    f"CREATE MATERIALIZED VIEW IF NOT EXISTS `a`.`b` AS {QUERY};": CreateMaterializedView(CreateTable(AB, query=QUERY, if_not_exists=True)),
    f"create or replace materialized view spark_catalog.a.b partitioned by (x) comment 'c' tblproperties (type = 'mor') as ({QUERY})": (
        CreateMaterializedView(
            CreateTable(AB, partition_by=("x",), properties=(("type", "mor"),), comment="c", query=f"({QUERY})", or_replace=True)
        )
    ),
    f"alter materialized view a.b as {QUERY}": AlterMaterializedView(AB, QUERY),
    "refresh materialized view a.b": RefreshMaterializedView(AB),
    "refresh materialized view a.b full": RefreshMaterializedView(AB, full=True),
    "drop materialized view if exists a.b cascade": DropMaterializedView(AB, if_exists=True),
    "drop materialized view a.b": DropMaterializedView(AB),
}


@pytest.mark.parametrize("text", READ)
def test_a_statement_is_read(text: str) -> None:
    assert route(text, lambda parts: False) == READ[text]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("create materialized view a.b", "AS and the query"),
        (f"create materialized view a.b (x) as {QUERY}", "AS and the query"),
        (f"create materialized view a.b partitioned by (x int) as {QUERY}", "columns of a materialized view"),
        (f"create materialized view a.b using delta as {QUERY}", "USING delta"),
        (f"create materialized view a.b schedule every 1 hour as {QUERY}", "SCHEDULE"),
        (f"create or replace materialized view if not exists a.b as {QUERY}", "says two things"),
        ("create materialized view a.b as delete from c.d", "a query"),
        ("alter materialized view a.b rename to a.c", "AS"),
        ("refresh materialized view a.b sync", "end of the statement"),
        ("drop materialized view a.b purge", "end of the statement"),
    ],
)
def test_what_it_cannot_be_is_refused(text: str, at: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=at):
        route(text, lambda parts: False)


def test_other_words_are_not_taken_for_one() -> None:
    assert route("select materialized from view", lambda parts: False) == Passthrough("select materialized from view")
