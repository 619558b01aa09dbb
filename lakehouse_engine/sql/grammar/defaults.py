"""DEFAULT in statements: in a column's definition, and as a word for a value."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.lexer import Token, significant

if TYPE_CHECKING:
    from lakehouse_engine.sql.grammar.reader import StatementReader

_ENDS = ("COMMENT", "DEFAULT", "GENERATED", "PRIMARY", "CHECK", "UNIQUE", "CONSTRAINT", "REFERENCES")
_PLACES = ("FIRST", "AFTER")
_BEFORE_OPERAND = ("IS", "AND", "OR", "NOT", "THEN", "ELSE", "=", "==", "<=>", "<>", "!=")
"""After these, `NOT NULL` belongs to the expression, not to the column."""
_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_AFTER_LIST = ("FROM", "WHERE", "UNION", "INTERSECT", "EXCEPT", "MINUS", "LATERAL", "GROUP", "HAVING", "ORDER", "LIMIT", "|>")

ValueOf = Callable[[int], str]
"""Value that replaces DEFAULT at that position, counted from 0."""


def default_expression(reader: StatementReader, *, placed: bool = False) -> str:
    """Expression after DEFAULT, up to the column's next clause. `placed`: FIRST and AFTER are such clauses."""
    begin = reader.at
    ends = (*_ENDS, *_PLACES) if placed else _ENDS
    while True:
        while reader.accept("NOT"):
            pass
        reader.until(",", "NOT", *ends)
        if reader.keyword() != "NOT" or (reader.keyword(1) == "NULL" and reader.keyword(-1) not in _BEFORE_OPERAND):
            break
    return reader.text[reader.tokens[begin].start : reader.end_before()]


def has_query(text: str) -> bool:
    """True if an expression holds a sub-query."""
    signs = [token.keyword for token in significant(text)]
    return any(one == "(" and following in _QUERY_STARTS for one, following in itertools.pairwise(signs))


def is_default(text: str) -> bool:
    """True if an assigned expression is the word DEFAULT."""
    return [token.keyword for token in significant(text)] == ["DEFAULT"]


def with_values(query: str, value_of: ValueOf, *, by_name: bool) -> str:
    """An INSERT's query with values for DEFAULT, in rows of VALUES and in a SELECT list.

    Raises `UnsupportedSqlError` with BY NAME, and for DEFAULT inside a value (unless the query reads a relation, which could have such a
    column).
    """
    tokens = significant(query)
    if not any(token.keyword == "DEFAULT" for token in tokens):
        return query
    verb = tokens[0].keyword
    items = list(_rows(tokens) if verb == "VALUES" else _selected(tokens) if verb == "SELECT" else ())
    reads = reads_relation(query)
    edits: list[tuple[Token, str]] = []
    for number, item in items:
        words = [token.keyword for token in item]
        if words[:1] == ["DEFAULT"] and (len(words) == 1 or (verb == "SELECT" and _is_named(words))):
            if by_name:
                raise UnsupportedSqlError("DEFAULT in INSERT ... BY NAME: leave the column out, and it gets its default")
            edits.append((item[0], value_of(number)))
        elif not reads and any(_is_bare(item, at) for at in range(len(item))):
            raise UnsupportedSqlError("DEFAULT inside of a value of INSERT: it stands alone in the place of a column's value")
    for token, value in reversed(edits):
        query = query[: token.start] + value + query[token.end :]
    return query


def defaulted(query: str) -> tuple[frozenset[int], frozenset[int]]:
    """Positions at which every row of the INSERT's query has just DEFAULT, and those at which only some do."""
    tokens = significant(query)
    verb = tokens[0].keyword if tokens else ""
    items = _rows(tokens) if verb == "VALUES" else _selected(tokens) if verb == "SELECT" else ()
    said: dict[int, set[bool]] = {}
    for number, item in items:
        words = [token.keyword for token in item]
        said.setdefault(number, set()).add(words[:1] == ["DEFAULT"] and (len(words) == 1 or (verb == "SELECT" and _is_named(words))))
    return (
        frozenset(number for number, found in said.items() if found == {True}),
        frozenset(number for number, found in said.items() if len(found) > 1),
    )


def reads_relation(query: str) -> bool:
    """True if it is a SELECT that reads a relation, which may have a column called default."""
    tokens = significant(query)
    return tokens[0].keyword == "SELECT" and any(token.keyword == "FROM" for token in tokens)


def _is_named(words: Sequence[str]) -> bool:
    """`DEFAULT AS name`, or `DEFAULT name`: a quoted name has no keyword."""
    return (len(words) == 3 and words[1] == "AS") or (len(words) == 2 and (words[1] == "" or words[1].isidentifier()))


def _is_bare(item: Sequence[Token], at: int) -> bool:
    around = {item[index].keyword for index in (at - 1, at + 1) if 0 <= index < len(item)}
    called = at + 1 < len(item) and item[at + 1].keyword == "("
    return item[at].keyword == "DEFAULT" and "." not in around and "AS" not in around and not called


def _outside(tokens: Sequence[Token]) -> Iterator[tuple[str, Token]]:
    """Tokens outside of brackets; the brackets themselves are left out."""
    depth = 0
    for token in tokens:
        word = token.keyword
        depth -= word in (")", "]")
        if depth == 0 and word not in (")", "]", "(", "["):
            yield word, token
        depth += word in ("(", "[")


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Parts between commas outside of brackets."""
    commas = {token.start for word, token in _outside(tokens) if word == ","}
    item: list[Token] = []
    for token in tokens:
        if token.start in commas:
            yield item
            item = []
        else:
            item.append(token)
    yield item


def _rows(tokens: Sequence[Token]) -> Iterator[tuple[int, list[Token]]]:
    """Each value of VALUES with its position in its row; a row of one value needs no brackets."""
    for row in _split(tokens[1:]):
        closing = _closing(row)
        inner = row[1:closing] if closing is not None else row
        yield from enumerate(_split(inner))


def _closing(row: Sequence[Token]) -> int | None:
    """End of the bracket that starts the row."""
    depth = 0
    for at, token in enumerate(row):
        depth += (token.keyword in ("(", "[")) - (token.keyword in (")", "]"))
        if depth == 0:
            return at if at and row[0].keyword == "(" else None
    return None


def _selected(tokens: Sequence[Token]) -> Iterator[tuple[int, list[Token]]]:
    end = next((token.start for word, token in _outside(tokens) if word in _AFTER_LIST), tokens[-1].end)
    listed = [token for token in tokens[1:] if token.start < end]
    union = any(word in ("UNION", "INTERSECT", "EXCEPT", "MINUS") for word, _ in _outside(tokens))
    return enumerate(() if union else _split(listed))
