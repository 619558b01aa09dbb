"""Finds calls of qualified functions (`schema.name(...)`) and replaces them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.lexer import name_value, significant
from lakehouse_engine.sql.grammar.references import Parts

Write = Callable[[tuple[str, ...]], str]
"""Text of a call with these arguments."""
_CALL = re.compile(r"\.\s*(?:\w+|`(?:[^`]|``)+`)\s*\(")
_NO_CALL = frozenset({"INTO", "TABLE", "OVERWRITE", "VIEW", "FUNCTION", "EXISTS", "MERGE", "."})
"""Words after which a name with a parenthesis is not a call."""


@dataclass(frozen=True, slots=True)
class _Call:
    parts: Parts
    start: int
    arguments: tuple[tuple[int, int], ...]
    end: int


def rewritten(text: str, find: Callable[[Parts], Write | None]) -> str:
    """`text` with each call that `find` knows replaced, arguments first."""
    if _CALL.search(text) is None:
        return text
    pieces, position = [], 0
    for call in _calls(text):
        write = find(call.parts) if call.start >= position else None
        if write is not None:
            arguments = tuple(rewritten(text[start:end], find) for start, end in call.arguments)
            pieces += [text[position : call.start], write(arguments)]
            position = call.end
    return "".join([*pieces, text[position:]])


def expanded(body: str, arguments: Mapping[str, str]) -> str:
    """`body` with parameter names (in lower case) replaced."""
    tokens, pieces, position = significant(body), [], 0
    for number, token in enumerate(tokens):
        before = tokens[number - 1].keyword if number else ""
        after = tokens[number + 1].keyword if number + 1 < len(tokens) else ""
        if token.is_name and before != "." and after != "(" and name_value(token).lower() in arguments:
            pieces += [body[position : token.start], arguments[name_value(token).lower()]]
            position = token.end
    return "".join([*pieces, body[position:]])


def _calls(text: str) -> Iterator[_Call]:
    """Calls of names with two or more parts, in order of their start."""
    cursor = Cursor(text, significant(text))
    while not cursor.done:
        before = cursor.keyword(-1)
        chain = cursor.chain()
        if chain is None:
            cursor.at += 1
        elif len(chain[0]) > 1 and cursor.keyword() == "(" and before not in _NO_CALL:
            yield _read(cursor, chain[0], chain[1])


def _read(cursor: Cursor, parts: Parts, start: int) -> _Call:
    """The call whose parenthesis is next; the cursor continues inside it."""
    first = cursor.at + 1
    if not cursor.skip_group():
        raise UnsupportedSqlError(f"the arguments of {'.'.join(parts)} are not closed")
    last, cursor.at = cursor.at - 1, first
    spans, begin, depth = [], first, 0
    for number in range(first, last):
        word = cursor.tokens[number].keyword
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if word == "," and depth == 0:
            spans.append((begin, number))
            begin = number + 1
    if last > first:
        spans.append((begin, last))
    tokens = cursor.tokens
    if any(begin == end for begin, end in spans):
        raise UnsupportedSqlError(f"an argument of {'.'.join(parts)} is empty")
    return _Call(parts, start, tuple((tokens[begin].start, tokens[end - 1].end) for begin, end in spans), tokens[last].end)
