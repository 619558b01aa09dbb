"""What of a relation a statement can need, as far as its text says so plainly: which columns, and rows of which partitions.

A column is needed where any name in the text is its name: names in literals that may be identifiers count, and a star, or one of the
few constructs that mean columns without naming them, means all. A condition counts for a relation where it stands in the WHERE of the
relation's own query: rows that do not fulfil it are in no result, whatever they are joined with. What is not understood needs everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.condition import conjunct
from lakehouse_engine.sql.lexer import Token, TokenKind, is_plain_string, name_value, significant, words
from lakehouse_engine.sql.references import Reference, plain

_UNNAMED = words("NATURAL PIVOT UNPIVOT TABLE IDENTIFIER EXECUTE")
"""What takes columns, or whole relations, that it does not name."""

_NO_OPERANDS = words("SELECT DISTINCT ALL BY AS ON AND OR NOT WHEN THEN ELSE IN LIKE BETWEEN WHERE HAVING FROM")
_PATTERN = re.compile(r"[()\[\]{}*+?|^$\\.]")
"""What a quoted name has that is a pattern of names (`spark.sql.parser.quotedRegexColumnNames`)."""

_ENDS = words("GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT QUALIFY SELECT") | {";"}
_ELSEWHERE = words("UNION EXCEPT INTERSECT MINUS SETMINUS FROM PIVOT UNPIVOT INSERT SET WHEN SEMI ANTI TABLESAMPLE WHERE")
"""What after a relation, before its WHERE, makes that a condition of something else, or on other rows. WHERE stands for itself."""

_UNCERTAIN = words("OR BETWEEN CASE") | {"|>", "|", "||"}
_DAY = re.compile(r"'\d{4}-\d{2}-\d{2}'")


@dataclass(frozen=True, slots=True)
class Condition:
    """Text that is true of every row that counts. `table` is what the relation is called there; `qualified`: its columns are, too."""

    text: str
    table: str
    qualified: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """`names` (lower case) are those of all columns needed, None: any. Rows fulfil one of the `conditions`; None: any do."""

    names: frozenset[str] | None = None
    conditions: tuple[Condition, ...] | None = None

    def and_of(self, other: Needs) -> Needs:
        """What two readings need together."""
        names = None if self.names is None or other.names is None else self.names | other.names
        conditions = None if self.conditions is None or other.conditions is None else (*self.conditions, *other.conditions)
        return Needs(names, conditions)


EVERYTHING = Needs()


def needs_of(text: str, references: Sequence[Reference]) -> list[Needs]:
    """What the statement needs of each of its references."""
    tokens = significant(text)
    names = names_in(tokens)
    return [_needs(text, tokens, reference, names) for reference in references]


def names_in(tokens: Sequence[Token]) -> frozenset[str] | None:
    """Every name in a text, in lower case; None where it may mean columns that it does not name."""
    found = set()
    for number, token in enumerate(tokens):
        if token.is_name:
            name = name_value(token)
            if (token.kind is TokenKind.QUOTED and _PATTERN.search(name)) or token.keyword in _UNNAMED:
                return None
            found.add(name.lower())
        elif token.kind is TokenKind.STRING and '"' in token.text[:2]:
            # A name where `spark.sql.ansi.doubleQuotedIdentifiers` is set.
            found.add(token.text.strip('rR"').replace('""', '"').lower())
        elif token.keyword == "|>" or (token.keyword == "*" and _is_star(tokens, number)):
            return None
    return frozenset(found)


def _is_star(tokens: Sequence[Token], number: int) -> bool:
    """Whether `*` stands for columns, rather than multiplies or counts."""
    before = tokens[number - 1] if number else None
    if before is None:
        return True
    around = [token.keyword for token in tokens[max(0, number - 2) : number + 2]]
    if around == ["COUNT", "(", "*", ")"]:
        return False
    if before.kind in (TokenKind.NUMBER, TokenKind.STRING, TokenKind.QUOTED) or before.keyword in (")", "]", "?"):
        return False
    return before.kind is not TokenKind.WORD or before.keyword in _NO_OPERANDS


def _needs(text: str, tokens: Sequence[Token], reference: Reference, names: frozenset[str] | None) -> Needs:
    if reference.alias_at is None:
        return EVERYTHING
    at = next((number for number, token in enumerate(tokens) if token.start >= reference.alias_at), len(tokens))
    if reference.alias is not None:
        at += 1 + (tokens[at].keyword == "AS")
    if at < len(tokens) and tokens[at].keyword == "(":
        # The columns are given other names.
        return EVERYTHING
    before = [token for token in tokens if token.start < reference.alias_at]
    if any(token.keyword == "TABLESAMPLE" for token in before if token.start >= reference.end):
        return Needs(names)
    ahead = [token.keyword for token in before if token.start < reference.start][-2:]
    if "SEMI" in ahead or "ANTI" in ahead:
        # Its columns are not to be seen in the WHERE.
        return Needs(names)
    condition = _where(text, tokens, at, alone=ahead[-1:] == ["FROM"])
    if condition is None:
        return Needs(names)
    found, alone = condition
    return Needs(names, (Condition(found, reference.alias or plain(reference.parts)[-1], not alone),))


def _where(text: str, tokens: Sequence[Token], at: int, *, alone: bool) -> tuple[str, bool] | None:
    """The text of the WHERE that follows a relation, and whether the relation is the only one there."""
    depth = 0
    for number in range(at, len(tokens)):
        keyword = tokens[number].keyword
        depth += (keyword in ("(", "[")) - (keyword in (")", "]"))
        if depth < 0 or (depth == 0 and (keyword in _ENDS or keyword == "|>")):
            return None
        if depth == 0 and keyword == "WHERE":
            end = _end(tokens, number + 1)
            return None if end == number + 1 else (text[tokens[number + 1].start : tokens[end - 1].end], alone)
        if depth == 0 and keyword in _ELSEWHERE:
            return None
        # Joins, further relations and views of generated rows have columns of their own.
        alone = False
    return None


def _end(tokens: Sequence[Token], at: int) -> int:
    """Behind the last token of the condition that begins at one."""
    depth = 0
    for number in range(at, len(tokens)):
        keyword = tokens[number].keyword
        depth += (keyword in ("(", "[")) - (keyword in (")", "]"))
        if depth < 0 or (depth == 0 and (keyword in _ENDS or keyword in _ELSEWHERE)):
            return number
    return len(tokens)


def partition_filter(conditions: Sequence[Condition] | None, schema: pa.Schema, fields: Sequence[str]) -> pc.Expression | None:
    """An expression over partition columns (`fields`) that is true of every row that fulfils a condition; None where there is none."""
    lowered = {name.lower() for name in fields}
    columns = {field.name.lower(): field for field in schema if field.name.lower() in lowered and _is_plain(field.type)}
    parts = [_expression(one, columns) for one in conditions or ()]
    known = [part for part in parts if part is not None]
    return reduce(lambda left, right: left | right, known) if known and len(known) == len(parts) else None


def _is_plain(kind: pa.DataType) -> bool:
    """Of which a literal means the same to Spark, whatever its settings, as it does here."""
    return bool(pat.is_string(kind) or pat.is_integer(kind) or pat.is_date(kind) or pat.is_boolean(kind))


def _expression(condition: Condition, columns: Mapping[str, pa.Field]) -> pc.Expression | None:
    found = []
    for part in _conjuncts(significant(condition.text)):
        own = _unqualified(part, condition)
        if own is None or (condition.qualified and _is_null(own)) or not all(_is_literal(token, columns, own[0]) for token in own[1:]):
            continue
        try:
            found.append(conjunct(own, columns, condition.text))
        except UnsupportedSqlError:
            # Not a comparison of a partition column with literals: it rules out nothing.
            continue
    return reduce(lambda left, right: left & right, found) if found else None


def _is_null(tokens: Sequence[Token]) -> bool:
    """Whether a part may be true of the nulls that a join has in the place of a row that it does not find."""
    return [token.keyword for token in tokens[1:]] == ["IS", "NULL"]


def _conjuncts(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts that AND joins at the top; none where something could bind them otherwise."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.keyword in ("(", "[")) - (token.keyword in (")", "]"))
        if depth == 0 and token.keyword in _UNCERTAIN:
            return []
        if token.keyword == "AND" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _unqualified(tokens: list[Token], condition: Condition) -> list[Token] | None:
    """The part without the relation's name before its column; None where the column may be another's."""
    if len(tokens) < 3 or not tokens[0].is_name:
        return None
    if tokens[1].keyword != ".":
        return None if condition.qualified else tokens
    return tokens[2:] if name_value(tokens[0]).lower() == condition.table.lower() and tokens[2].is_name else None


def _is_literal(token: Token, columns: Mapping[str, pa.Field], column: Token) -> bool:
    """Whether a token is no text, or one that means the same whatever the session's settings (escapes, double quotes, dates)."""
    if token.kind is not TokenKind.STRING:
        return True
    field = columns.get(name_value(column).lower())
    if field is not None and pat.is_date(field.type):
        return _DAY.fullmatch(token.text) is not None
    return is_plain_string(token)
