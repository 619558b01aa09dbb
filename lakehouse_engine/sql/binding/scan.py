"""Finds the names in relation position from tokens alone.

FROM, JOIN, a comma inside FROM, TABLE and the USING of MERGE set a state "a relation is next", which follows parentheses; CTE names hide
relations of the same single-part name in the scope that Spark gives them. This module does not know which tables exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.heads import read_head, read_insert_target
from lakehouse_engine.sql.grammar.lexer import TokenKind, significant, words
from lakehouse_engine.sql.grammar.references import Chain, Parts, Reference, ReferenceKind, Scan, folded
from lakehouse_engine.sql.grammar.relations import FILES_FUNCTION, OTHER_FUNCTIONS, TABLE_FUNCTIONS, read_arguments, read_tail

_QUERY_STARTS = frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
_SET_OPERATORS = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"))
_ENDS_FROM = words("SELECT WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT QUALIFY SET WHEN MAP REDUCE")
_FROM_IN_ARGUMENTS = frozenset(("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"))
_SCRIPT_BLOCKS = frozenset(("THEN", "ELSE", "DO", "LOOP", "REPEAT", "BEGIN"))


@dataclass(slots=True)
class _Frame:
    """One level of parentheses. `fresh`: a query may start at the next token. `outer`: scope around this level's query."""

    scope: int
    outer: int | None
    opener: str = ""
    expect: bool = False
    bare: bool = False
    in_from: bool = False
    query: bool = False
    fresh: bool = True
    hint: bool = False
    values: bool = False
    merge: bool = False
    recursive: bool = False
    defining: str | None = None
    ctes: set[str] = field(default_factory=set)


def scan(text: str) -> Scan:
    """Find the relation names, dotted chains and constructs that cannot be bound in one statement (or script).

    Raises `UnsupportedSqlError` for an unclosed literal or comment, and for an unknown Hudi table function.
    """
    return _Scanner(Cursor(text, significant(text))).run()


class _Scanner:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.references: list[Reference] = []
        self.chains: list[Chain] = []
        self.obstacles: list[str] = []
        self.parents: list[int | None] = [None]
        self.frames = [_Frame(scope=0, outer=None)]
        self.at_statement = True
        self.in_script = False
        self.stream = False

    def run(self) -> Scan:
        cursor = self.cursor
        while not cursor.done:
            token = cursor.tokens[cursor.at]
            if token.kind is TokenKind.SYMBOL:
                self._symbol(token.text)
            elif token.is_name:
                self._name()
            else:
                self._plain()
        return Scan(tuple(self.references), tuple(self.chains), tuple(self.parents), tuple(self.obstacles))

    def _plain(self) -> None:
        frame = self.frames[-1]
        frame.expect = frame.fresh = self.at_statement = False
        self.cursor.at += 1

    def _new_scope(self, parent: int | None) -> int:
        self.parents.append(parent)
        return len(self.parents) - 1

    # symbols

    def _symbol(self, symbol: str) -> None:
        if symbol == "(":
            self._open()
        elif symbol == ")":
            self.cursor.at += 1
            self._close()
        elif symbol in ("/*+", "*/"):
            self._hint(symbol)
        elif symbol == ";":
            self.cursor.at += 1
            self.frames = [_Frame(scope=self._new_scope(None), outer=None)]
            self.at_statement = True
        else:
            if symbol == "${":
                self.obstacles.append("variable substitution ${...}")
            frame = self.frames[-1]
            self._plain()
            frame.expect = symbol == "," and frame.in_from and not frame.values
            if symbol == "|>":
                frame.in_from = False

    def _open(self) -> None:
        frame = self.frames[-1]
        before = self.cursor.peek(-1)
        opener = before.keyword if before is not None and before.kind is TokenKind.WORD else ""
        self.frames.append(_Frame(frame.scope, frame.scope, opener, expect=frame.expect, bare=frame.bare))
        frame.expect = frame.bare = frame.fresh = self.at_statement = False
        self.cursor.at += 1

    def _close(self) -> None:
        if len(self.frames) == 1:
            return
        self.frames.pop()
        frame = self.frames[-1]
        if frame.defining is not None:
            frame.ctes.add(frame.defining)
            frame.defining = None
            if not (self.cursor.accept(",") and self._define_cte(frame)):
                frame.fresh = True
                self.at_statement = len(self.frames) == 1

    def _hint(self, symbol: str) -> None:
        frame = self.frames[-1]
        self.cursor.at += 1
        if symbol == "/*+":
            self.frames.append(_Frame(frame.scope, frame.outer, hint=True, fresh=False))
        else:
            depth = next((index for index, known in enumerate(self.frames) if known.hint), len(self.frames))
            del self.frames[depth:]

    # names

    def _name(self) -> None:
        cursor, frame = self.cursor, self.frames[-1]
        in_hint = any(known.hint for known in self.frames)
        if self.at_statement:
            self.at_statement = False
            if self._head():
                return
        token = cursor.tokens[cursor.at]
        if not in_hint and token.kind is TokenKind.WORD and cursor.keyword(1) != "." and self._keyword(frame, token.keyword):
            return
        frame.fresh = frame.values = False
        if frame.expect and not in_hint:
            self._relation(frame)
        else:
            self._chain(frame, in_hint)

    def _head(self) -> bool:
        start = self.cursor.at
        if self.cursor.keyword() == "BEGIN" and self.cursor.keyword(1) not in ("", ";"):
            self.in_script = True
        head = read_head(self.cursor)
        frame = self.frames[-1]
        for parts, begin, end, alias in head.targets:
            self._add(ReferenceKind.TARGET, parts, begin, end, alias=alias)
        self.obstacles += head.obstacles
        frame.merge, self.at_statement = head.merge, head.statement_follows
        return self.cursor.at > start

    def _keyword(self, frame: _Frame, keyword: str) -> bool:
        """Act on a word that is a keyword here; False (without moving) if it is a name."""
        fresh = frame.fresh
        if keyword == "TABLE" and self._table(frame):
            return True
        if fresh and keyword in _QUERY_STARTS and not self._is_argument_from(frame, keyword):
            self._start_query(frame)
        if keyword == "WITH" and self._with(frame):
            return True
        if keyword == "INSERT" and self.cursor.keyword(1) in ("INTO", "OVERWRITE"):
            return self._insert(frame)
        if keyword == "FROM":
            return self._from(frame)
        if keyword in _SET_OPERATORS and self.cursor.keyword(-1) != "*" and not frame.expect:
            return self._set_operator(frame)
        if self._joins(frame, keyword):
            return True
        if keyword in _ENDS_FROM or keyword == "VALUES":
            frame.in_from = frame.in_from and keyword == "VALUES"
            frame.values = keyword == "VALUES"
            frame.expect = frame.fresh = False
            self.cursor.at += 1
            return True
        return self._between(frame, keyword)

    def _start_query(self, frame: _Frame) -> None:
        if len(self.frames) > 1 and not frame.query:
            frame.outer = None if self.frames[-2].defining is not None else frame.scope
            frame.scope = self._new_scope(frame.outer)
        frame.query, frame.expect, frame.bare = True, False, False

    def _is_argument_from(self, frame: _Frame, keyword: str) -> bool:
        return keyword == "FROM" and not frame.query and frame.opener in _FROM_IN_ARGUMENTS

    def _from(self, frame: _Frame) -> bool:
        argument = self._is_argument_from(frame, "FROM") or self.cursor.keyword(-1) == "DISTINCT"
        self._plain()
        if not argument:
            frame.expect = frame.in_from = frame.query = True
        return True

    def _set_operator(self, frame: _Frame) -> bool:
        self._plain()
        self.cursor.accept_any(("ALL", "DISTINCT"))
        frame.in_from, frame.fresh, frame.query = False, True, True
        frame.scope = self._new_scope(frame.outer)
        return True

    def _joins(self, frame: _Frame, keyword: str) -> bool:
        if keyword == "JOIN" or (keyword == "USING" and frame.merge):
            self._plain()
            frame.expect, frame.merge = True, False
            return True
        if keyword == "LATERAL" and self.cursor.keyword(1) == "VIEW":
            frame.in_from = frame.expect = False
            self.cursor.at += 2
            return True
        if keyword == "LATERAL" and frame.expect:
            self.cursor.at += 1
            return True
        return False

    def _between(self, frame: _Frame, keyword: str) -> bool:
        """Words that change the meaning of what follows without starting a clause."""
        cursor = self.cursor
        following = cursor.peek(1)
        if keyword == "AS" and len(self.frames) == 1 and not frame.query:
            cursor.at += 1
            frame.fresh = True
            return True
        if keyword == "STREAM" and frame.expect and following is not None and (following.is_name or following.text == "("):
            cursor.at += 1
            self.stream = True
            return True
        if keyword == "IDENTIFIER" and frame.expect and cursor.keyword(1) == "(":
            self.obstacles.append("IDENTIFIER(...) as a relation")
        if keyword == "EXECUTE" and cursor.keyword(1) == "IMMEDIATE":
            self.obstacles.append("EXECUTE IMMEDIATE")
        if self.in_script and keyword in _SCRIPT_BLOCKS and len(self.frames) == 1:
            cursor.at += 1
            self.at_statement = frame.fresh = True
            return True
        return False

    def _table(self, frame: _Frame) -> bool:
        following = self.cursor.peek(1)
        if following is None or not (frame.fresh or (frame.opener and self.cursor.keyword(-1) in (",", "=>"))):
            return False
        if following.text == "(":
            self.cursor.at += 1
            frame.expect = frame.bare = True
            return True
        if not following.is_name or following.keyword in ("AS", "FROM"):
            return False
        self.cursor.at += 1
        frame.fresh = False
        self._relation(frame, bare=True)
        return True

    def _with(self, frame: _Frame) -> bool:
        start = self.cursor.at
        self.cursor.at += 1
        token = self.cursor.peek(1)
        frame.recursive = self.cursor.keyword() == "RECURSIVE" and token is not None and token.is_name and token.keyword != "AS"
        self.cursor.at += frame.recursive
        if self._define_cte(frame):
            return True
        self.cursor.at = start
        return False

    def _define_cte(self, frame: _Frame) -> bool:
        """Read `name [(columns)] [MAX RECURSION LEVEL n] [AS]` up to the body's parenthesis, which is opened."""
        cursor = self.cursor
        named = cursor.peek()
        if named is None or not named.is_name:
            return False
        parts = cursor.chain()
        if parts is None or len(parts[0]) != 1:
            return False
        if cursor.keyword() == "(" and cursor.keyword(1) not in (*_QUERY_STARTS, "("):
            cursor.skip_group()
        if cursor.accept("MAX", "RECURSION", "LEVEL"):
            cursor.literal()
        cursor.accept("AS")
        if cursor.keyword() != "(" or cursor.keyword(1) not in (*_QUERY_STARTS, "("):
            return False
        frame.defining = parts[0][0].lower()
        if frame.recursive:
            frame.ctes.add(frame.defining)
        frame.expect = False
        self._open()
        return True

    def _insert(self, frame: _Frame) -> bool:
        head = read_insert_target(self.cursor)
        self.obstacles += head.obstacles
        for parts, begin, end, _ in head.targets:
            self._add(ReferenceKind.TARGET, parts, begin, end, obstacle="options WITH (...)" if head.options else None)
        frame.in_from = frame.expect = frame.query = False
        frame.fresh = True
        return True

    def _relation(self, frame: _Frame, bare: bool = False) -> None:
        cursor = self.cursor
        chain = cursor.chain()
        frame.expect = False
        obstacle, self.stream = ("STREAM" if self.stream else None), False
        if chain is None:
            return
        parts, start, ends = chain
        bare = bare or frame.bare
        if cursor.keyword() == "(":
            called = ".".join(folded(parts))
            if called in OTHER_FUNCTIONS:
                raise UnsupportedSqlError(f"{called}(...) is not supported: {OTHER_FUNCTIONS[called]}")
            if called in TABLE_FUNCTIONS:
                self._function(parts, start, obstacle)
            return
        if len(parts) == 1 and any(parts[0].lower() in known.ctes for known in self.frames):
            return
        if bare:
            self._add(ReferenceKind.READ, parts, start, ends[-1], obstacle=obstacle)
            return
        tail = read_tail(cursor)
        self.references.append(
            Reference(
                ReferenceKind.READ,
                parts,
                start,
                ends[-1],
                frame.scope,
                alias=tail.alias,
                alias_at=tail.alias_at,
                travel=tail.travel,
                obstacle=obstacle or tail.obstacle,
            )
        )

    def _function(self, parts: Parts, start: int, obstacle: str | None) -> None:
        arguments = read_arguments(self.cursor, named=folded(parts) == (FILES_FUNCTION,))
        end = self.cursor.end_before()
        tail = read_tail(self.cursor)
        obstacle = obstacle or tail.obstacle or ("a time-travel clause" if tail.travel else None)
        if arguments is None:
            obstacle = f"{parts[-1]} without a closing parenthesis"
        self.references.append(
            Reference(
                ReferenceKind.FUNCTION,
                parts,
                start,
                end,
                self.frames[-1].scope,
                alias=tail.alias,
                alias_at=tail.alias_at,
                obstacle=obstacle,
                arguments=arguments,
            )
        )

    def _chain(self, frame: _Frame, in_hint: bool) -> None:
        member = self.cursor.keyword(-1) == "."
        chain = self.cursor.chain()
        frame.expect = False
        if chain is None or member:
            return
        parts, start, ends = chain
        starred = self.cursor.keyword() == "." and self.cursor.keyword(1) == "*"
        if len(parts) > 1 and self.cursor.keyword() != "(":
            self.chains.append(Chain(parts, start, ends, frame.scope, starred, in_hint))

    def _add(
        self, kind: ReferenceKind, parts: Parts, start: int, end: int, *, alias: str | None = None, obstacle: str | None = None
    ) -> None:
        self.references.append(Reference(kind, parts, start, end, self.frames[-1].scope, alias=alias, obstacle=obstacle))
