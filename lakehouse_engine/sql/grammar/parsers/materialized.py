"""CREATE, ALTER, REFRESH and DROP of materialized views."""

from __future__ import annotations

from collections.abc import Callable

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.parsers.ddl import TableClauses, table_clause
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.statements import (
    AlterMaterializedView,
    CreateMaterializedView,
    CreateTable,
    DropMaterializedView,
    RefreshMaterializedView,
    Statement,
)


def is_materialized(reader: StatementReader) -> bool:
    """True if the words after the verb name a materialized view."""
    ahead = 3 if (reader.keyword(1), reader.keyword(2)) == ("OR", "REPLACE") else 1
    return reader.keyword() in _VERBS and (reader.keyword(ahead), reader.keyword(ahead + 1)) == ("MATERIALIZED", "VIEW")


def parse_materialized(reader: StatementReader) -> Statement:
    """Raises `UnsupportedSqlError`."""
    return _VERBS[reader.keyword()](reader)


def _create(reader: StatementReader) -> Statement:
    """`CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [PARTITIONED BY (..)] [COMMENT '..'] [TBLPROPERTIES (..)] AS query`"""
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    reader.expect("MATERIALIZED", "VIEW")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.parts()
    if or_replace and if_not_exists:
        message = "CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS says two things; leave one of them out"
        raise UnsupportedSqlError(message, relation=".".join(name))
    clauses = TableClauses()
    while not reader.accept("AS"):
        if reader.done or reader.keyword() == "(":
            raise reader.refusal("AS and the query of a materialized view")
        table_clause(reader, clauses)
    if clauses.columns:
        raise UnsupportedSqlError("the columns of a materialized view are those of its query; name those", relation=".".join(name))
    table = CreateTable(
        name,
        partition_by=clauses.partition_by,
        properties=clauses.properties,
        comment=clauses.comment,
        query=reader.query(),
        if_not_exists=if_not_exists,
        or_replace=or_replace,
    )
    return CreateMaterializedView(table)


def _alter(reader: StatementReader) -> Statement:
    """`ALTER MATERIALIZED VIEW name AS query`"""
    reader.expect("ALTER", "MATERIALIZED", "VIEW")
    name = reader.parts()
    reader.expect("AS")
    return AlterMaterializedView(name, reader.query())


def _refresh(reader: StatementReader) -> Statement:
    """`REFRESH MATERIALIZED VIEW name [FULL]`"""
    reader.expect("REFRESH", "MATERIALIZED", "VIEW")
    name, full = reader.parts(), reader.accept("FULL")
    reader.finish()
    return RefreshMaterializedView(name, full)


def _drop(reader: StatementReader) -> Statement:
    """`DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE | RESTRICT]`"""
    reader.expect("DROP", "MATERIALIZED", "VIEW")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.parts()
    reader.accept_any(("CASCADE", "RESTRICT"))
    reader.finish()
    return DropMaterializedView(name, if_exists)


_VERBS: dict[str, Callable[[StatementReader], Statement]] = {"CREATE": _create, "ALTER": _alter, "REFRESH": _refresh, "DROP": _drop}
