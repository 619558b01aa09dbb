"""A text with several statements, taken apart."""

from __future__ import annotations

from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, tokenize

_BLANK = (TokenKind.SPACE, TokenKind.COMMENT)


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
