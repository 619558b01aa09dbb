"""Tokens and the brackets around them."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.sql.grammar.lexer import Token


def depths(tokens: Sequence[Token]) -> list[int]:
    """Bracket depth of each token, round or square; a bracket itself is outside."""
    found, depth = [], 0
    for token in tokens:
        depth -= token.keyword in (")", "]")
        found.append(depth)
        depth += token.keyword in ("(", "[")
    return found


def parts(tokens: Sequence[Token], keyword: str) -> list[list[Token]]:
    """Parts that a keyword or symbol outside of brackets separates; one more than its occurrences."""
    found: list[list[Token]] = [[]]
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth == 0 and token.keyword == keyword:
            found.append([])
        else:
            found[-1].append(token)
    return found
