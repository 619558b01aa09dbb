"""A text with several statements, taken apart."""

from __future__ import annotations

import itertools

from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, Token, TokenKind, tokenize

_BLANK = (TokenKind.SPACE, TokenKind.COMMENT)
_ANSWERING = QUERY_WORDS | {"CALL", ""}
_CHANGING = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"), ("DELETE", "FROM"), ("MERGE", "INTO"), ("MERGE", "WITH"), (")", "UPDATE"))


def split_statements(text: str) -> list[str]:
    """The statements of `text`, without their `;`; pieces that are only comments are dropped. A SQL script (BEGIN ... END) is one.

    What is not closed belongs to its statement, for whoever runs it to refuse.
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
    """The first word of a statement in upper case, also behind brackets; empty where there is none."""
    said = (token for token in tokenize(text) if token.kind not in _BLANK and token.text != "(")
    first = next(said, None)
    return first.keyword if first is not None else ""


def takes_limit(text: str) -> bool:
    """Whether LIMIT behind `text` cuts the rows that it answers with, as behind a query or CALL. Behind INSERT it would cut what is stored.

    Of several statements the last one decides. A text without any takes it, for whoever runs it to refuse.
    """
    last = (split_statements(text) or [""])[-1]
    words = [token.keyword for token in tokenize(last) if token.kind not in _BLANK]
    depths = itertools.accumulate((word == "(") - (word == ")") for word in words)
    outside = [word for word, depth in zip(words, depths, strict=True) if depth == 0]
    return first_word(last) in _ANSWERING and not any(pair in _CHANGING for pair in itertools.pairwise(outside))
