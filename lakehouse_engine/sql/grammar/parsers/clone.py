"""CREATE TABLE ... CLONE."""

from __future__ import annotations

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.cursor import TYPED
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.statements import CloneTable

_FILES = {"": "auto", "SHALLOW": "link", "DEEP": "copy"}


def is_clone(reader: StatementReader) -> bool:
    """True if CREATE [OR REPLACE] TABLE continues with a name and CLONE; does not move."""
    start = reader.at
    try:
        reader.accept("CREATE")
        reader.accept("OR", "REPLACE")
        if not reader.accept("TABLE"):
            return False
        reader.accept("IF", "NOT", "EXISTS")
        if reader.chain() is None:
            return False
        reader.accept_any(("SHALLOW", "DEEP"))
        return reader.keyword() == "CLONE"
    finally:
        reader.at = start


def parse_clone(reader: StatementReader) -> CloneTable:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [SHALLOW | DEEP] CLONE source [[FOR] (TIMESTAMP | VERSION) AS OF literal]`

    `FOR SYSTEM_TIME` and `FOR SYSTEM_VERSION` mean the same. Raises `UnsupportedSqlError`.
    """
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    reader.expect("TABLE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.parts()
    if or_replace and if_not_exists:
        raise UnsupportedSqlError("CREATE OR REPLACE TABLE IF NOT EXISTS says two things; leave one of them out", relation=".".join(name))
    files = _FILES[reader.accept_any(("SHALLOW", "DEEP"))]
    reader.expect("CLONE")
    source = reader.parts("the name of the table to be cloned")
    as_of, is_typed = _moment(reader)
    reader.finish()
    return CloneTable(name, source, files, as_of, if_not_exists, or_replace, is_typed)


def _moment(reader: StatementReader) -> tuple[str | None, bool]:
    """The literal, and whether it is a typed timestamp or date; then with its type, for Spark to compute."""
    reader.accept("FOR")
    kind = reader.accept_any(("TIMESTAMP", "VERSION", "SYSTEM_TIME", "SYSTEM_VERSION"))
    if not kind:
        return None, False
    reader.expect("AS", "OF")
    begin, is_typed = reader.offset, kind in ("TIMESTAMP", "SYSTEM_TIME") and reader.keyword() in TYPED
    text = reader.literal()
    if text is None:
        raise reader.refusal("an instant, a timestamp, a savepoint's name or -N as a literal after AS OF")
    return (reader.text[begin : reader.end_before()], True) if is_typed else (text, False)
