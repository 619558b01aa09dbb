"""DESCRIBE, SHOW, USE, REFRESH. Each function continues after the verb."""

from __future__ import annotations

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.lexer import TokenKind
from lakehouse_engine.sql.grammar.parsers.ddl import SCHEMA_WORDS
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.statements import (
    Describe,
    DescribeHistory,
    DescribeSchema,
    Refresh,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    Statement,
    UseSchema,
)


def parse_describe(reader: StatementReader) -> Statement:
    """`DESCRIBE [TABLE] [EXTENDED | FORMATTED] name [column | AS JSON]`, `DESCRIBE SCHEMA [EXTENDED] name` and
    `DESCRIBE HISTORY name [LIMIT n]`
    """
    reader.at += 1
    if reader.keyword() == "HISTORY" and _name_follows(reader):
        return _history(reader)
    if reader.keyword() == "DETAIL" and reader.keyword(2) == ".":
        raise UnsupportedSqlError("DESCRIBE DETAIL is Delta's; write DESCRIBE EXTENDED, or CALL show_table_properties")
    if reader.accept_any(SCHEMA_WORDS):
        reader.accept("EXTENDED")
        schema = reader.identifier("a schema's name")
        reader.finish()
        return DescribeSchema(schema)
    if reader.keyword() == "TABLE" and _name_follows(reader):
        reader.at += 1
    extended = reader.keyword() in ("EXTENDED", "FORMATTED") and _name_follows(reader)
    reader.at += extended
    name = reader.parts()
    as_json = reader.accept("AS", "JSON")
    column = None if reader.done else reader.identifier()
    reader.finish()
    if as_json and not extended:
        raise UnsupportedSqlError(f"DESCRIBE ... AS JSON takes EXTENDED: DESCRIBE TABLE EXTENDED {'.'.join(name)} AS JSON")
    return Describe(name, extended, column, as_json)


def _history(reader: StatementReader) -> DescribeHistory:
    reader.at += 1
    name = reader.parts()
    limit = reader.value() if reader.accept("LIMIT") else None
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise reader.refusal("a number of instants after LIMIT")
    reader.finish()
    return DescribeHistory(name, limit)


def parse_show(reader: StatementReader) -> Statement:
    """`SHOW (TABLES | TABLE EXTENDED | VIEWS | SCHEMAS | COLUMNS | TBLPROPERTIES | CREATE TABLE | PARTITIONS) ...`"""
    reader.expect("SHOW")
    statement = _show(reader)
    reader.finish()
    return statement


def _show(reader: StatementReader) -> Statement:
    if reader.accept_any(("SCHEMAS", "DATABASES", "NAMESPACES")):
        return ShowSchemas(_pattern(reader))
    listed = reader.accept_any(("TABLES", "VIEWS"))
    if listed:
        schema = reader.identifier("a schema's name") if reader.accept_any(("IN", "FROM")) else None
        return ShowTables(schema, _pattern(reader), listed == "VIEWS")
    if reader.accept("TABLE", "EXTENDED"):
        schema = reader.identifier("a schema's name") if reader.accept_any(("IN", "FROM")) else None
        reader.expect("LIKE")
        return ShowTables(schema, reader.string("a pattern"), extended=True)
    if reader.accept("COLUMNS"):
        reader.accept_any(("IN", "FROM"))
        name = reader.parts()
        if reader.accept_any(("IN", "FROM")):
            name = (reader.identifier("a schema's name"), *name[-1:])
        return ShowColumns(name)
    if reader.accept("TBLPROPERTIES"):
        name = reader.parts()
        return ShowProperties(name, reader.keys()[0] if reader.keyword() == "(" else None)
    if reader.accept("CREATE", "TABLE"):
        return ShowCreateTable(reader.parts())
    if reader.accept("PARTITIONS"):
        return ShowPartitions(reader.parts())
    raise reader.refusal("TABLES, TABLE EXTENDED, VIEWS, SCHEMAS, COLUMNS, TBLPROPERTIES, CREATE TABLE or PARTITIONS")


def _pattern(reader: StatementReader) -> str | None:
    liked = reader.accept("LIKE")
    token = reader.peek()
    if liked or (token is not None and token.kind is TokenKind.STRING):
        return reader.string("a pattern")
    return None


def parse_use(reader: StatementReader) -> Statement:
    """`USE [SCHEMA | DATABASE | NAMESPACE] name`"""
    reader.expect("USE")
    if reader.keyword() in SCHEMA_WORDS and _name_follows(reader):
        reader.at += 1
    schema = reader.identifier("a schema's name")
    reader.finish()
    return UseSchema(schema)


def parse_refresh(reader: StatementReader) -> Statement:
    """`REFRESH [TABLE] name`"""
    reader.expect("REFRESH")
    reader.accept("TABLE")
    name = reader.parts()
    reader.finish()
    return Refresh(name)


def _name_follows(reader: StatementReader) -> bool:
    following = reader.peek(1)
    return following is not None and following.is_name
