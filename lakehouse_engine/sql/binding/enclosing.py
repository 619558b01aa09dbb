"""What a statement's conditions say about the relations that it reads: those of a relation's own query, and of the queries around it.

A row that does not match its query's WHERE is in no result. The same holds for the WHERE around a sub-query, view or common table
expression, for columns that are passed on unchanged (`select_block`). If one name is read twice, rows that either read needs count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse_engine.sql.binding.predicate import Predicate, both, either, mapped, predicate_of
from lakehouse_engine.sql.binding.select_block import SelectBlock
from lakehouse_engine.sql.grammar.brackets import depths
from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, string_value, words
from lakehouse_engine.sql.grammar.references import Reference, plain
from lakehouse_engine.sql.grammar.relations import read_alias

_ENDS = words("GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT QUALIFY SELECT") | {";"}
_ELSEWHERE = words("UNION EXCEPT INTERSECT MINUS SETMINUS FROM PIVOT UNPIVOT INSERT SET WHEN SEMI ANTI ASOF NEAREST TABLESAMPLE WHERE")
"""Words between a relation and its WHERE that make the condition apply to something else. WHERE stands for itself."""

_AFTER_ALONE = words("WHERE GROUP HAVING ORDER")


@dataclass(frozen=True, slots=True)
class OnResult:
    """What is known about the relevant rows of a result. `names`: its column names, if they are renamed."""

    rows: Predicate
    names: tuple[str, ...] = ()


class Enclosing:
    """Conditions of one statement, by the numbers of its (significant) `tokens`. `result`: what its reader asks of the rows."""

    def __init__(self, text: str, tokens: list[Token], result: OnResult | None = None) -> None:
        self._text, self._tokens, self._result = text, tokens, result
        self._around, self._closing = _groups(tokens)
        self._known: dict[int, Predicate | None] = {}

    def of(self, reference: Reference) -> Predicate | None:
        """What holds for every row of the relation that this read needs; None if nothing is known."""
        if reference.alias_at is None:
            return None
        first = next(number for number, token in enumerate(self._tokens) if token.start >= reference.start)
        at = next((number for number, token in enumerate(self._tokens) if token.start >= reference.alias_at), len(self._tokens))
        if any(self._tokens[number].keyword == "TABLESAMPLE" for number in range(first, at)):
            return None
        if reference.alias is not None:
            at += 1 + (self._tokens[at].keyword == "AS")
        return self._source(first, at, reference.alias or plain(reference.parts)[-1])

    def _keyword(self, number: int) -> str:
        return self._tokens[number].keyword if 0 <= number < len(self._tokens) else ""

    def _source(self, first: int, at: int, name: str) -> Predicate | None:
        """Conditions on what is read from token `first` on, is called `name`, and ends before token `at`."""
        if self._keyword(at) == "(" or {"SEMI", "ANTI", "ASOF"} & {self._keyword(first - 1), self._keyword(first - 2)}:
            # Its columns are renamed or hidden, or all of its rows determine which are joined.
            return None
        opens = self._keyword(first - 1) == "FROM"
        where = self._where(at, alone=opens)
        own = None
        if where is not None:
            begin, end, alone = where
            own = predicate_of(self._tokens[begin:end], name, qualified=not alone)
        return both(own, self._around_it(first, at, name, opens))

    def _where(self, at: int, *, alone: bool) -> tuple[int, int, bool] | None:
        """Tokens of the WHERE after a relation, and whether the relation is alone."""
        for number, keyword in self._level(at):
            if keyword in _ENDS or keyword == "|>":
                return None
            if keyword == "WHERE":
                end = self._end(number + 1)
                return None if self._may_go_on(end) else (number + 1, end, alone)
            if keyword in _ELSEWHERE:
                return None
            # Joins, further relations and lateral views have columns of their own.
            alone = False
        return None

    def _end(self, at: int) -> int:
        """Token after the condition that starts at the given one."""
        behind = at
        for number, keyword in self._level(at):
            if keyword in _ENDS or keyword in _ELSEWHERE:
                return number
            behind = number + 1
        return behind

    def _may_go_on(self, end: int) -> bool:
        """True if an OR after the end word of a condition may belong to it: a column can have that name (`offset > 5`), and FROM follows
        DISTINCT.

        Anything else that continues there only narrows it.
        """
        if self._keyword(end + 1) == "BY":
            return False
        following = (keyword for _, keyword in self._level(end) if keyword in ("SELECT", ";", "OR"))
        return next(following, None) == "OR"

    def _level(self, at: int) -> Iterator[tuple[int, str]]:
        """Numbers and keywords of the tokens from one on, to the end of its brackets, skipping inner brackets."""
        for number, depth in enumerate(depths(self._tokens[at:]), at):
            if depth < 0:
                return
            if depth == 0:
                yield number, self._keyword(number)

    def _around_it(self, first: int, at: int, name: str, opens: bool) -> Predicate | None:
        """What the outer queries say about a relation."""
        opened = self._around[first]
        if opened is None:
            begin, end, result = 0, len(self._tokens), self._result
            rows, names = (None, ()) if result is None else (result.rows, result.names)
        else:
            begin, end, names = opened + 1, self._closing[opened], ()
            rows = self._group(opened)
        block = None if rows is None else SelectBlock.of(self._tokens, begin, end)
        if block is None or first < block.reads_from:
            return None
        alone = opens and (at >= end or self._keyword(at) in _AFTER_ALONE)
        return mapped(rows, lambda output: block.column_of(output, name, alone=alone, names=names), nulls=alone)

    def _group(self, opened: int) -> Predicate | None:
        """What is known about the rows of a query in parentheses."""
        if opened not in self._known:
            self._known[opened] = self._rows_of(opened)
        return self._known[opened]

    def _rows_of(self, opened: int) -> Predicate | None:
        if self._keyword(opened + 1) not in ("SELECT", "WITH"):
            return None
        if self._is_relation(opened):
            return self._read_by(opened, self._closing[opened] + 1, "")
        if self._keyword(opened - 1) == "AS" and self._keyword(opened - 3) in ("WITH", ",") and self._tokens[opened - 2].is_name:
            return self._cte(name_value(self._tokens[opened - 2]).lower(), self._closing[opened])
        return None

    def _is_relation(self, number: int) -> bool:
        """True if a relation stands at a token. After a comma it may be anything; what follows decides."""
        before = self._keyword(number - 1)
        return before in ("JOIN", ",") or (before == "FROM" and self._keyword(number - 2) != "DISTINCT")

    def _read_by(self, first: int, after: int, name: str) -> Predicate | None:
        """Like `_source`, for what ends before `after`, where its alias may follow."""
        cursor = Cursor(self._text, self._tokens, after)
        alias = read_alias(cursor)
        return self._source(first, cursor.at, alias or name)

    def _cte(self, name: str, closed: int) -> Predicate | None:
        """For a common table expression: what any of its readers needs. If these are not clear, nothing is known."""
        if any(token.keyword == "RECURSIVE" for token in self._tokens):
            return None
        found: list[Predicate | None] = []
        for number in range(closed + 1, len(self._tokens)):
            token = self._tokens[number]
            if token.kind is TokenKind.STRING and token.text.startswith('"') and string_value(token).lower() == name:
                return None  # a name if `spark.sql.ansi.doubleQuotedIdentifiers` is set
            if not token.is_name or name_value(token).lower() != name or "." in (self._keyword(number - 1), self._keyword(number + 1)):
                continue
            found.append(self._read_by(number, number + 1, name) if self._is_relation(number) else None)
        return either(*found)


def _groups(tokens: Sequence[Token]) -> tuple[list[int | None], dict[int, int]]:
    """For each token the innermost parenthesis around it, and for each parenthesis its end."""
    around: list[int | None] = []
    closing: dict[int, int] = {}
    opened: list[int] = []
    for number, token in enumerate(tokens):
        if token.keyword == ")" and opened:
            closing[opened.pop()] = number
        around.append(opened[-1] if opened else None)
        if token.keyword == "(":
            opened.append(number)
    closing.update(dict.fromkeys(opened, len(tokens)))
    return around, closing
