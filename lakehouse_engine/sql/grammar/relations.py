"""Grammar around one relation name: time travel, sample, options, watermark, alias, and table functions."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.options.unavailable import METADATA_STATEMENTS
from lakehouse_engine.sql.grammar.cursor import TYPED, Cursor
from lakehouse_engine.sql.grammar.lexer import TokenKind, name_value, words
from lakehouse_engine.sql.grammar.references import Argument, Travel

CHANGES_FUNCTION = "hudi_table_changes"
READ_OPTIMIZED_FUNCTION = "hudi_read_optimized"
FILES_FUNCTION = "read_files"
WITH_DELETED_FUNCTION = "lakehouse_with_deleted"
TABLE_FUNCTIONS = (CHANGES_FUNCTION, READ_OPTIMIZED_FUNCTION, WITH_DELETED_FUNCTION, FILES_FUNCTION)

OTHER_FUNCTIONS = {
    "hudi_query_timeline": "CALL show_timeline(table => ...) shows the timeline, with showArchived => true the archived instants, too",
    "hudi_metadata": f"{METADATA_STATEMENTS}; `lakehouse files` lists the files of a table",
    "hudi_filesystem_view": "`lakehouse files` lists the files of a table, and CALL show_commits what was written",
}
"""Hudi table functions that this engine lacks, and what to use instead."""

_TRAVEL = {"VERSION": "version", "SYSTEM_VERSION": "version", "TIMESTAMP": "timestamp", "SYSTEM_TIME": "timestamp"}

NOT_AN_ALIAS = words(
    """
    ANTI CROSS EXCEPT FULL INNER INTERSECT JOIN LATERAL LEFT NATURAL ON RIGHT SEMI SETMINUS MINUS UNION USING OUTER
    WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT QUALIFY PIVOT UNPIVOT TABLESAMPLE WATERMARK
    SELECT FROM INSERT MAP REDUCE SET WHEN VALUES WITH PARTITION THEN ELSE END DO AS FOR VERSION SYSTEM_VERSION TIMESTAMP SYSTEM_TIME
    AND OR TABLE BY
    """
)
"""Words after a relation that are not its alias."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows a relation's name. Fields as in `Reference`."""

    alias: str | None
    alias_at: int
    travel: Travel | None
    obstacle: str | None


def read_tail(cursor: Cursor) -> Tail:
    """Read everything that may follow a relation's name, including the alias."""
    travel: Travel | None = None
    obstacle: str | None = None
    while True:
        clause = read_travel(cursor)
        if clause is not None:
            travel, obstacle = clause, obstacle or ("two time-travel clauses" if travel else None)
        elif cursor.keyword() == "WITH" and cursor.keyword(1) == "(":
            cursor.at += 1
            cursor.skip_group()
            obstacle = "options WITH (...)"
        elif cursor.keyword() == "TABLESAMPLE" and cursor.keyword(1) == "(":
            cursor.at += 1
            cursor.skip_group()
            if cursor.accept("REPEATABLE"):
                cursor.skip_group()
        elif cursor.accept("WATERMARK"):
            obstacle = "WATERMARK"
        else:
            break
    alias_at = cursor.end_before()
    return Tail(read_alias(cursor), alias_at, travel, obstacle)


def read_alias(cursor: Cursor) -> str | None:
    """Read `[AS] name`; None (without moving) if there is none."""
    skip = 1 if cursor.keyword() == "AS" else 0
    token = cursor.peek(skip)
    if token is None or not token.is_name:
        return None
    if skip == 0 and token.kind is TokenKind.WORD and token.keyword in NOT_AN_ALIAS:
        return None
    cursor.at += skip + 1
    return name_value(token)


def read_travel(cursor: Cursor) -> Travel | None:
    """Read `[FOR] (VERSION | SYSTEM_VERSION | TIMESTAMP | SYSTEM_TIME) AS OF <expression>`; None (without moving) if there is none."""
    skip = 1 if cursor.keyword() == "FOR" else 0
    kind = _TRAVEL.get(cursor.keyword(skip))
    if kind is None or cursor.keyword(skip + 1) != "AS" or cursor.keyword(skip + 2) != "OF":
        return None
    start = cursor.offset
    cursor.at += skip + 3
    begin = cursor.offset
    # `TIMESTAMP '...'` is in the session's time zone and Spark computes it; a plain text is in UTC.
    is_typed = kind == "timestamp" and cursor.keyword() in TYPED
    value = cursor.expression()
    end = cursor.end_before()
    return Travel(kind, start, end, cursor.text[begin:end], None if is_typed else value)


def read_arguments(cursor: Cursor, *, named: bool = False) -> tuple[Argument, ...] | None:
    """Read a table function's arguments in parentheses; None if these are not closed (the rest of the text is passed).

    `named`: arguments may have names, and be true or false.
    """
    arguments: list[Argument] = []
    cursor.at += 1
    while not cursor.done and cursor.keyword() != ")":
        arguments.append(_argument(cursor, named=named))
        cursor.accept(",")
    return tuple(arguments) if cursor.accept(")") else None


def _argument(cursor: Cursor, *, named: bool) -> Argument:
    """Read up to the comma or parenthesis that ends the argument."""
    name = _argument_name(cursor) if named else None
    is_typed, first = cursor.keyword() in TYPED, cursor.at
    value = cursor.accept_any(("TRUE", "FALSE")).lower() if named and cursor.keyword() in ("TRUE", "FALSE") else cursor.literal()
    if value is None or cursor.keyword() not in (",", ")"):
        value = None
        cursor.at = first
        while not cursor.done and cursor.keyword() not in (",", ")"):
            if not cursor.skip_group():
                cursor.at += 1
    text = cursor.text[cursor.tokens[first].start : cursor.end_before()]
    return Argument(text, value=None if is_typed else value, name=name)


def _argument_name(cursor: Cursor) -> str | None:
    """Read `name =>`; None (without moving) if there is none."""
    token = cursor.peek()
    if token is None or not token.is_name or cursor.keyword(1) != "=>":
        return None
    cursor.at += 2
    return name_value(token)
