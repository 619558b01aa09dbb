"""What a statement can need of a relation, as far as its text shows: columns and rows.

A column is needed if any name in the text equals its name; text literals that may be identifiers count, and a star, or a construct that
means columns without naming them, means all. Rows are needed unless the conditions around the relation exclude them (`enclosing`). What is
not understood needs everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.sql.binding.enclosing import Enclosing, OnResult
from lakehouse_engine.sql.binding.predicate import Predicate, either, predicate_of
from lakehouse_engine.sql.binding.select_block import PATTERN
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, significant, words
from lakehouse_engine.sql.grammar.references import Reference

_UNNAMED = words("NATURAL PIVOT UNPIVOT TABLE IDENTIFIER EXECUTE")
"""Constructs that read columns, or whole relations, without naming them."""

_NO_OPERANDS = words("SELECT DISTINCT ALL BY AS ON AND OR NOT WHEN THEN ELSE IN LIKE BETWEEN WHERE HAVING FROM")


@dataclass(frozen=True, slots=True)
class Needs:
    """`names` (lower case) are the needed columns, None: any. `rows` holds for every needed row; None: any."""

    names: frozenset[str] | None = None
    rows: Predicate | None = None

    def and_of(self, other: Needs) -> Needs:
        """What two reads need together."""
        names = None if self.names is None or other.names is None else self.names | other.names
        return Needs(names, either(self.rows, other.rows))

    def of_rows(self) -> Needs:
        """The same rows, with all columns."""
        return Needs(None, self.rows)


EVERYTHING = Needs()


def needs_of(text: str, references: Sequence[Reference], result: OnResult | None = None) -> list[Needs]:
    """What the statement needs of each reference; `result`: what is needed of its own result, if known."""
    tokens = significant(text)
    names, enclosing = names_in(tokens), Enclosing(text, tokens, result)
    return [_needs(tokens, reference, names, enclosing) for reference in references]


def rows_where(condition: str | None, table: str, *, qualified: bool = False) -> Predicate | None:
    """What a condition says about rows of the relation called `table` in it."""
    return None if condition is None else predicate_of(significant(condition), table, qualified=qualified)


def names_in(tokens: Sequence[Token]) -> frozenset[str] | None:
    """All names in a text, in lower case; None if it may mean columns that it does not name."""
    found = set()
    for number, token in enumerate(tokens):
        if token.is_name:
            name = name_value(token)
            if (token.kind is TokenKind.QUOTED and PATTERN.search(name)) or token.keyword in _UNNAMED:
                return None
            found.add(name.lower())
        elif token.kind is TokenKind.STRING and '"' in token.text[:2]:
            # a name if `spark.sql.ansi.doubleQuotedIdentifiers` is set
            found.add(token.text.strip('rR"').replace('""', '"').lower())
        elif token.keyword == "|>" or (token.keyword == "*" and is_star(tokens, number)):
            return None
    return frozenset(found)


def is_star(tokens: Sequence[Token], number: int) -> bool:
    """True if `*` stands for columns, not for multiplication or counting."""
    before = tokens[number - 1] if number else None
    if before is None:
        return True
    around = [token.keyword for token in tokens[max(0, number - 2) : number + 2]]
    if around == ["COUNT", "(", "*", ")"]:
        return False
    if before.kind in (TokenKind.NUMBER, TokenKind.STRING, TokenKind.QUOTED) or before.keyword in (")", "]", "?"):
        return False
    return before.kind is not TokenKind.WORD or before.keyword in _NO_OPERANDS


def _needs(tokens: Sequence[Token], reference: Reference, names: frozenset[str] | None, enclosing: Enclosing) -> Needs:
    if reference.alias_at is None:
        return EVERYTHING
    behind = [token for token in tokens if token.start >= reference.alias_at]
    if reference.alias is not None:
        behind = behind[1 + (behind[0].keyword == "AS") :]
    if behind and behind[0].keyword == "(":
        # The columns are renamed.
        return EVERYTHING
    return Needs(names, enclosing.of(reference))
