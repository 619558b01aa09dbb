"""Tokens and the brackets that they are in."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.sql.grammar.lexer import Token


def depths(tokens: Sequence[Token]) -> list[int]:
    """Of each token in how many brackets it is, round or square; a bracket is outside of itself."""
    found, depth = [], 0
    for token in tokens:
        depth -= token.keyword in (")", "]")
        found.append(depth)
        depth += token.keyword in ("(", "[")
    return found


def parts(tokens: Sequence[Token], keyword: str) -> list[list[Token]]:
    """What a keyword or symbol outside of brackets separates: one more part than it stands there."""
    found: list[list[Token]] = [[]]
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth == 0 and token.keyword == keyword:
            found.append([])
        else:
            found[-1].append(token)
    return found
