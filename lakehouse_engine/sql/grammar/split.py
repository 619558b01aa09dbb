"""Splits a text into statements."""

from __future__ import annotations

import itertools

from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, Token, TokenKind, tokenize

_BLANK = (TokenKind.SPACE, TokenKind.COMMENT)
_ANSWERING = QUERY_WORDS | {"CALL", ""}
_CHANGING = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"), ("DELETE", "FROM"), ("MERGE", "INTO"), ("MERGE", "WITH"), (")", "UPDATE"))


def split_statements(text: str) -> list[str]:
    """Statements of `text` without their `;`; pieces that hold only comments are dropped. A SQL script (BEGIN ... END) is one.

    An unclosed literal stays in its statement, which is refused when it runs.
    """
    pieces: list[list[Token]] = [[]]
    for token in tokenize(text):
        if token.kind is TokenKind.SYMBOL and token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    said = [token for piece in pieces for token in piece if token.kind not in _BLANK]
    if said and said[0].keyword == "BEGIN":
        return [text.strip().rstrip(";")]
    return ["".join(token.text for token in piece).strip() for piece in pieces if any(token.kind not in _BLANK for token in piece)]


def first_word(text: str) -> str:
    """First word of a statement in upper case, after any brackets; empty if there is none."""
    said = (token for token in tokenize(text) if token.kind not in _BLANK and token.text != "(")
    first = next(said, None)
    return first.keyword if first is not None else ""


def takes_limit(text: str) -> bool:
    """True if a LIMIT after `text` limits its result, as after a query or CALL. After INSERT it would limit what is stored.

    The last of several statements counts. A text without statements returns True and is refused when it runs.
    """
    last = (split_statements(text) or [""])[-1]
    words = [token.keyword for token in tokenize(last) if token.kind not in _BLANK]
    depths = itertools.accumulate((word == "(") - (word == ")") for word in words)
    outside = [word for word, depth in zip(words, depths, strict=True) if depth == 0]
    return first_word(last) in _ANSWERING and not any(pair in _CHANGING for pair in itertools.pairwise(outside))
