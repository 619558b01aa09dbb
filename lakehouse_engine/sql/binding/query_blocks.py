"""The SELECTs of a statement: their sources, stars, and sub-queries.

Anything other than a plain SELECT over named relations, sub-queries and joins is a block that is not `plain`: nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse_engine.sql.binding.select_block import PATTERN
from lakehouse_engine.sql.grammar.brackets import depths
from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, words
from lakehouse_engine.sql.grammar.references import Parts, Reference, plain
from lakehouse_engine.sql.grammar.relations import read_alias, read_tail

_SET_OPERATORS = words("UNION EXCEPT INTERSECT MINUS SETMINUS")
_QUERY = words("SELECT WITH")
_ENDS_FROM = words("WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT QUALIFY")
_NOT_PLAIN = words("NATURAL PIVOT UNPIVOT TRANSFORM MATCH_RECOGNIZE WATERMARK |> ${ ;")
"""Words and symbols that read all columns without a star, or turn a query into something other than a SELECT."""


@dataclass(slots=True, eq=False)
class Source:
    """One relation in FROM: a name, call, or sub-query. `name` (lower case) qualifies its columns; empty: nothing does.

    `query` is a sub-query's or named common table expression's; `reference` is the name or call, if the scan has it; neither for a call of
    another function. `renamed`: its columns get other names.
    """

    name: str
    query: Group | None = None
    reference: Reference | None = None
    renamed: bool = False


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT: tokens `begin` to before `end`, with its select list up to `listed`. `own` are its tokens without those of inner queries.
    """

    group: Group
    begin: int
    end: int
    listed: int = 0
    plain: bool = False
    sources: list[Source] = field(default_factory=list)
    own: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Group:
    """A query: the statement's, or one in parentheses. `around` is the block that contains it; None for common table expressions.

    `recursive`: it may read itself.
    """

    around: Block | None
    blocks: list[Block] = field(default_factory=list)
    recursive: bool = False
    opaque: bool = False


class QueryBlocks:
    """Queries of one statement, by the numbers of its (significant) `tokens`."""

    def __init__(self, text: str, tokens: list[Token], references: Sequence[Reference]) -> None:
        self.tokens = tokens
        self._text, self._references = text, {one.start: one for one in references}
        self._closing = _closing(tokens)
        self.blocks: list[Block] = []
        self.is_whole = True
        """True if everything that reads a relation is a source of a block."""
        end = len(tokens)
        while end and self.keyword(end - 1) == ";":
            end -= 1
        begin = next((at for at, depth in enumerate(depths(tokens)) if depth == 0 and self._starts_query(at)), end)
        self.top = self._group(begin, end, None, {})

    def keyword(self, at: int) -> str:
        return self.tokens[at].keyword if 0 <= at < len(self.tokens) else ""

    def _starts_query(self, at: int) -> bool:
        """True if a query starts at a token: SELECT, or WITH before `name [(columns)] [AS] (`; options (`WITH ('k' = 1)`) do not count."""
        if self.keyword(at) == "SELECT":
            return True
        return self.keyword(at) == "WITH" and at + 1 < len(self.tokens) and self.tokens[at + 1].is_name

    def _group(self, begin: int, end: int, around: Block | None, ctes: Mapping[str, Group]) -> Group:
        group, known = Group(around), dict(ctes)
        if self.keyword(begin) == "WITH":
            begin = self._with(begin, end, known)
        for first, last in self._operands(begin, end):
            if self.keyword(first) == "SELECT":
                group.blocks.append(self._block(group, first, last, known))
            elif self.keyword(first) == "(" and first in self._closing:
                group.opaque = True
                self._group(first + 1, self._closing[first], around, known)
            else:
                group.opaque, self.is_whole = True, False
        return group

    def _with(self, at: int, end: int, known: dict[str, Group]) -> int:
        """Read common table expressions into `known`; returns the token after them."""
        recursive = self.keyword(at + 1) == "RECURSIVE"
        at += 1 + recursive
        while at < end and self.tokens[at].is_name:
            name = name_value(self.tokens[at]).lower()
            at += 1
            renamed = self.keyword(at) == "(" and not self._starts_query(at + 1)
            if renamed:
                at = self._closing.get(at, end) + 1
            while at < end and self.keyword(at) != "(":  # MAX RECURSION LEVEL n, AS
                at += 1
            closed = self._closing.get(at, end)
            made = self._group(at + 1, closed, None, known)
            made.recursive = recursive
            made.opaque = made.opaque or renamed
            known[name] = made
            at = closed + 1
            if self.keyword(at) != ",":
                break
            at += 1
        return at

    def _operands(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Parts between set operators; `* EXCEPT (...)` is not one."""
        first = begin
        for at, depth in enumerate(depths(self.tokens[begin:end]), begin):
            if depth == 0 and self.keyword(at) in _SET_OPERATORS and self.keyword(at - 1) not in ("*", "."):
                yield first, at
                first = at + 1 + (self.keyword(at + 1) in ("ALL", "DISTINCT"))
        yield first, end

    def _block(self, group: Group, begin: int, end: int, ctes: Mapping[str, Group]) -> Block:
        block = Block(group, begin, end)
        self.blocks.append(block)
        top = [at for at, depth in enumerate(depths(self.tokens[begin:end]), begin) if depth == 0]
        reads = next((at for at in top if self.keyword(at) == "FROM" and self.keyword(at - 1) != "DISTINCT"), end)
        block.listed = reads if reads < end else next((at for at in top if self.keyword(at) in _ENDS_FROM), end)
        block.plain = True
        derived = self._from(block, reads + 1, ctes) if reads < end else {}
        at = begin
        while at < end:
            if self.keyword(at) == "(" and self._starts_query(at + 1) and at in self._closing:
                if at not in derived:
                    self._group(at + 1, self._closing[at], block, ctes)
                at = self._closing[at] + 1
                continue
            block.own.append(at)
            at += 1
        if any(self.keyword(at) == "(" and self.keyword(at + 1) in ("FROM", "TABLE") for at in block.own):
            block.plain = self.is_whole = False
        block.plain = block.plain and not any(self._is_odd(at) for at in block.own)
        return block

    def _is_odd(self, at: int) -> bool:
        token = self.tokens[at]
        return token.keyword in _NOT_PLAIN or (token.kind is TokenKind.QUOTED and bool(PATTERN.search(name_value(token).replace(".", ""))))

    def _from(self, block: Block, begin: int, ctes: Mapping[str, Group]) -> dict[int, Source]:
        """Read the relations of a FROM clause; sub-queries by the numbers of their parentheses."""
        cursor, expect, derived = Cursor(self._text, self.tokens[: block.end], begin), True, {}
        opened: list[int] = []
        while not cursor.done and not (cursor.keyword() in _ENDS_FROM and not opened):
            at, word = cursor.at, cursor.keyword()
            if word in ("JOIN", ","):
                expect = True
            elif word == "(" and expect and not self._starts_query(at + 1):
                opened.append(at)
            elif word == ")" and opened:
                opened.pop()
                expect = False
                cursor.at += 1
                block.plain = block.plain and read_alias(cursor) is None
                continue
            elif expect and word not in ("LATERAL", "STREAM"):
                found = self._source(cursor, block, ctes)
                expect = False
                if found is None:
                    block.plain = False
                    cursor.at += cursor.at == at
                    continue
                block.sources.append(found)
                if word == "(":
                    derived[at] = found
                continue
            elif word in ("(", "["):
                cursor.at = self._closing.get(at, block.end)
            cursor.at += 1
        return derived

    def _source(self, cursor: Cursor, block: Block, ctes: Mapping[str, Group]) -> Source | None:
        """One relation with everything that may follow it; None for anything else."""
        query: Group | None = None
        reference: Reference | None = None
        parts: Parts = ()
        if cursor.keyword() == "(":
            closed = self._closing.get(cursor.at, block.end)
            query = self._group(cursor.at + 1, closed, block, ctes)
            cursor.at = closed + 1
        else:
            chain = cursor.chain()
            if chain is None:
                return None
            parts, reference = plain(chain[0]), self._references.get(chain[1])
            if cursor.keyword() == "(":
                cursor.skip_group()
            elif len(parts) == 1:
                query = ctes.get(parts[0].lower())
        alias = read_tail(cursor).alias
        renamed = cursor.keyword() == "("
        if renamed:
            cursor.skip_group()
        return Source(_called(alias, parts), query, None if query is not None else reference, renamed)


def _called(alias: str | None, parts: Parts) -> str:
    return (alias or (parts[-1] if parts else "")).lower()


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    """End of each closed bracket."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.keyword in ("(", "["):
            opened.append(at)
        elif token.keyword in (")", "]") and opened:
            found[opened.pop()] = at
    return found
