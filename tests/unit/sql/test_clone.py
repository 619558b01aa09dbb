"""CREATE TABLE ... CLONE, as it is read."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.statements import CloneTable, CreateTable, Passthrough
from lakehouse_engine.sql.router import route

AB, CD = ("a", "b"), ("c", "d")

READ = {
    "create table a.b clone c.d": CloneTable(AB, CD),
    "create table spark_catalog.a.b shallow clone spark_catalog.c.d;": CloneTable(AB, CD, "link"),
    "CREATE TABLE IF NOT EXISTS a.b DEEP CLONE c.d": CloneTable(AB, CD, "copy", if_not_exists=True),
    "create or replace table a.b clone c.d version as of -2": CloneTable(AB, CD, as_of="-2", or_replace=True),
    "create table `a`.`b` clone c.d timestamp as of '2026-01-01'": CloneTable(AB, CD, as_of="2026-01-01"),
    "create table a.b clone c.d timestamp as of timestamp '2026-01-01 10:00:00'": CloneTable(
        AB, CD, as_of="timestamp '2026-01-01 10:00:00'", is_typed=True
    ),
    "create table a.b clone c.d for system_version as of 'monday'": CloneTable(AB, CD, as_of="monday"),
    "create table clone clone shallow": CloneTable(("clone",), ("shallow",)),
}


@pytest.mark.parametrize("text", READ)
def test_a_clone_is_read(text: str) -> None:
    assert route(text, lambda parts: False) == READ[text]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("create table a.b clone c.d location '/x'", "location"),
        ("create table a.b clone c.d version as of 1 + 1", r"\+ 1"),
        ("create table a.b clone c.d timestamp as of current_date()", "current_date"),
        ("create table a.b clone c.d version of 1", "AS OF"),
        ("create table a.b clone (select 1)", r"\(select"),
        ("create or replace table if not exists a.b clone c.d", "says two things"),
    ],
)
def test_what_is_no_clone_of_a_table_is_refused(text: str, at: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=at):
        route(text, lambda parts: False)


def test_a_clone_in_another_catalog_is_sparks_and_clone_is_a_name_elsewhere() -> None:
    assert isinstance(route("create table other.a.b clone c.d", lambda parts: False), Passthrough)
    assert isinstance(route("create table a.clone (deep int)", lambda parts: False), CreateTable)
    assert isinstance(route("create table a.b as select deep.clone from clone", lambda parts: False), CreateTable)
