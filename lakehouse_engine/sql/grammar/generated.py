"""GENERATED in a column's definition, and DEFAULT as value of a generated column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.lexer import name_value, significant

if TYPE_CHECKING:
    from lakehouse_engine.sql.grammar.reader import StatementReader


def generated_expression(reader: StatementReader, column: str) -> str:
    """Expression of `GENERATED ALWAYS AS (expression)` at the cursor. Raises `UnsupportedSqlError` for IDENTITY."""
    _refuse_identity(reader, column)
    reader.expect("GENERATED", "ALWAYS", "AS")
    begin = reader.at
    if reader.keyword() != "(" or not reader.skip_group():
        raise reader.refusal("an expression in brackets behind GENERATED ALWAYS AS")
    if reader.at - begin == 2:
        raise reader.refusal("an expression in the brackets behind GENERATED ALWAYS AS")
    # Up to its last token: a comment after it would swallow what is written behind the expression.
    return reader.text[reader.tokens[begin + 1].start : reader.tokens[reader.at - 2].end]


def _refuse_identity(reader: StatementReader, column: str) -> None:
    if "IDENTITY" not in (reader.keyword(3), reader.keyword(4)):
        return
    clause = " ".join(token.text.upper() for token in reader.tokens[reader.at : reader.at + 3])
    raise UnsupportedSqlError(
        f"{clause} IDENTITY of the column {column} is not supported: writers beside each other share no counter; give the values in each"
        " INSERT (uuid(), or a number of the source)",
        column=column,
    )


def names_of(text: str) -> list[tuple[str, bool]]:
    """Names in an expression: words and quoted names without a dot before them, in lower case; True for those that are called."""
    tokens = significant(text)
    found = []
    for at, token in enumerate(tokens):
        if token.is_name and (not at or tokens[at - 1].keyword != "."):
            called = at + 1 < len(tokens) and tokens[at + 1].keyword == "("
            found.append((name_value(token).lower(), called))
    return list(dict.fromkeys(found))
