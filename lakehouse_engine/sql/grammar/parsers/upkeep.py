"""Statements by which other engines keep a table in order: ANALYZE, MSCK REPAIR, VACUUM, OPTIMIZE, RESTORE, and those on indexes."""

from __future__ import annotations

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.options.unavailable import REFRESHED_INDEXES
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.grammar.statements import Call, CreateIndex, DropIndex, NothingToDo, RestoreTable, ShowIndexes, Statement, Value

_STATISTICS = "bounds of values are in the footers of its files, which every read looks at"
_PARTITIONS = "its partitions are known by its commits"


def parse_analyze(reader: StatementReader) -> Statement:
    """`ANALYZE TABLE name ...`"""
    reader.expect("ANALYZE", "TABLE")
    return NothingToDo("ANALYZE TABLE", reader.parts(), _STATISTICS)


def parse_repair(reader: StatementReader) -> Statement:
    """`[MSCK] REPAIR TABLE name ...`"""
    reader.accept("MSCK")
    reader.expect("REPAIR", "TABLE")
    return NothingToDo("REPAIR TABLE", reader.parts(), f"{_PARTITIONS}; CALL repair_table mends damaged metadata")


def parse_recover(name: Parts) -> Statement:
    """`ALTER TABLE name RECOVER PARTITIONS`"""
    return NothingToDo("RECOVER PARTITIONS", name, _PARTITIONS)


def parse_vacuum(reader: StatementReader) -> Statement:
    """`VACUUM [TABLE] name [FULL | LITE] [RETAIN n HOURS] [DRY RUN]` is a clean; without RETAIN by the table's policy."""
    reader.expect("VACUUM")
    if reader.keyword() == "TABLE" and reader.keyword(1):
        reader.at += 1
    arguments: list[tuple[str | None, Value]] = [("table", ".".join(map(quote_name, reader.parts())))]
    reader.accept_any(("FULL", "LITE"))
    if reader.accept("RETAIN"):
        hours = reader.value()
        reader.expect("HOURS")
        arguments += [("clean_policy", "KEEP_LATEST_BY_HOURS"), ("hours_retained", hours)]
    if reader.accept("DRY", "RUN"):
        arguments.append(("dry_run", True))
    reader.finish()
    return Call("run_clean", tuple(arguments))


def parse_optimize(reader: StatementReader) -> Statement:
    """`OPTIMIZE [TABLE] name [WHERE condition] [ZORDER BY (column, ...)]` is a clustering, without ZORDER as the table's options say."""
    reader.expect("OPTIMIZE")
    if reader.keyword() == "TABLE" and reader.keyword(1):
        reader.at += 1
    arguments: list[tuple[str | None, Value]] = [("table", ".".join(map(quote_name, reader.parts())))]
    if reader.accept("WHERE"):
        arguments.append(("predicate", reader.until("ZORDER")))
    if reader.accept("ZORDER", "BY"):
        columns = reader.identifiers() if reader.keyword() == "(" else _listed(reader)
        arguments += [("order", ",".join(columns)), ("order_strategy", "z-order")]
    reader.finish()
    return Call("run_clustering", tuple(arguments))


def _listed(reader: StatementReader) -> tuple[str, ...]:
    names = [reader.identifier()]
    while reader.accept(","):
        names.append(reader.identifier())
    return tuple(names)


def parse_restore(reader: StatementReader) -> Statement:
    """`RESTORE [TABLE] name [TO] (VERSION | TIMESTAMP) AS OF literal`"""
    reader.expect("RESTORE")
    if reader.keyword() == "TABLE" and reader.keyword(1):
        reader.at += 1
    name = reader.parts()
    reader.accept("TO")
    if not reader.accept_any(("VERSION", "TIMESTAMP")) or not reader.accept("AS", "OF"):
        raise reader.refusal("VERSION AS OF or TIMESTAMP AS OF")
    moment = reader.literal()
    if moment is None:
        raise reader.refusal("an instant, a timestamp, a savepoint's name or -N as a literal")
    reader.finish()
    return RestoreTable(name, moment)


def parse_show_indexes(reader: StatementReader) -> Statement:
    """`SHOW INDEXES (FROM | IN | ON) [TABLE] name`"""
    reader.expect("SHOW")
    reader.accept_any(("INDEX", "INDEXES"))
    reader.accept_any(("FROM", "IN", "ON"))
    reader.accept("TABLE")
    name = reader.parts()
    reader.finish()
    return ShowIndexes(name)


def parse_index(reader: StatementReader, name: str) -> Statement:
    """CREATE and DROP INDEX. Raises `UnsupportedSqlError` for REFRESH INDEX; `name` is the table."""
    if reader.accept("CREATE", "INDEX"):
        return _create_index(reader)
    if reader.accept("DROP", "INDEX"):
        return _drop_index(reader)
    raise UnsupportedSqlError(f"{reader.keyword()} INDEX on {name}: {REFRESHED_INDEXES}", relation=name)


def _create_index(reader: StatementReader) -> CreateIndex:
    """`[IF NOT EXISTS] index ON [TABLE] name [USING type] [(column, ...)] [OPTIONS (key = value, ...)]`"""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    index, table = _index_of_table(reader)
    kind = reader.identifier("a type of index").lower() if reader.accept("USING") else None
    columns = reader.identifiers() if reader.keyword() == "(" else None
    options = reader.properties() if reader.accept("OPTIONS") else ()
    reader.finish()
    return CreateIndex(table, index, kind, columns, options, if_not_exists)


def _drop_index(reader: StatementReader) -> DropIndex:
    """`[IF EXISTS] index ON [TABLE] name`"""
    if_exists = reader.accept("IF", "EXISTS")
    index, table = _index_of_table(reader)
    reader.finish()
    return DropIndex(table, index, if_exists)


def _index_of_table(reader: StatementReader) -> tuple[str, Parts]:
    """Name of the index, in lower case as in Hudi, and the table."""
    index = reader.identifier("an index's name").lower()
    reader.expect("ON")
    if reader.keyword() == "TABLE" and reader.keyword(1):
        reader.at += 1
    return index, reader.parts()
