"""Statements that change rows, and procedure calls. Each function continues after the verb."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.bind import requalify
from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, TokenKind, significant
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.references import Parts, folded, plain
from lakehouse_engine.sql.grammar.relations import read_alias
from lakehouse_engine.sql.grammar.statements import (
    Assignments,
    Call,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MultiInsert,
    Statement,
    Truncate,
    Update,
    Value,
)


def parse_insert(reader: StatementReader, ctes: str = "") -> Statement:
    """`INSERT (INTO | OVERWRITE) [TABLE] name [PARTITION (..)] [(columns)] [BY NAME] [REPLACE WHERE condition] query`.

    `ctes` is a WITH list before it.
    """
    reader.expect("INSERT")
    overwrite = reader.accept_any(("INTO", "OVERWRITE")) == "OVERWRITE"
    following = reader.peek(1)
    if reader.keyword() == "TABLE" and following is not None and following.is_name and following.keyword not in ("VALUES", "SELECT"):
        reader.at += 1
    name = reader.parts()
    static: tuple[tuple[str, Value], ...] = ()
    dynamic: tuple[str, ...] = ()
    if reader.accept("PARTITION"):
        static, dynamic = reader.partition()
    if reader.keyword() == "IF":
        raise reader.refusal("INSERT ... IF NOT EXISTS")
    by_name = reader.accept("BY", "NAME")
    columns: tuple[str, ...] = ()
    if reader.keyword() == "(" and reader.keyword(1) not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "("):
        columns = reader.identifiers()
    replaced = None
    if not (overwrite or static or dynamic) and reader.accept("REPLACE", "WHERE"):
        replaced = _over(name, None, _condition_before_query(reader))
        signs = [token.keyword for token in significant(replaced)]
        if any(one == "(" and following in QUERY_WORDS for one, following in itertools.pairwise(signs)):
            raise reader.refusal("a condition without a sub-query for REPLACE WHERE")
    return Insert(name, ctes + reader.query(), columns, overwrite, static, dynamic, by_name, replaced)


def parse_multi_insert(reader: StatementReader, ctes: str = "") -> Statement:
    """`FROM source INSERT (INTO | OVERWRITE) name ... SELECT ... [INSERT ...]`: each insert gets the query `FROM source SELECT ...`."""
    start = reader.offset
    reader.expect("FROM")
    reader.until("INSERT")
    source = ctes + reader.text[start : reader.end_before()]
    inserts: list[Insert] = []
    while not reader.done:
        begin = reader.offset
        reader.at += 1
        reader.until("INSERT")
        one = parse_insert(StatementReader.over(reader.text[begin : reader.end_before()]))
        if not isinstance(one, Insert) or not one.query[:6].upper() == "SELECT":
            raise reader.refusal("SELECT in each INSERT behind FROM")
        inserts.append(replace(one, query=f"{source} {one.query}"))
    names = [folded(one.name) for one in inserts]
    doubled = next((one.name for one in inserts if names.count(folded(one.name)) > 1), None)
    if doubled is not None:
        message = f"FROM ... INSERT ... INSERT: {'.'.join(doubled)} is the target of two inserts; put their queries together by UNION ALL"
        raise UnsupportedSqlError(message, relation=".".join(doubled))
    return MultiInsert(tuple(inserts))


def _condition_before_query(reader: StatementReader) -> str:
    """FROM starts a query, except in IS DISTINCT FROM."""
    start = reader.offset
    while True:
        reader.until("SELECT", "WITH", "VALUES", "FROM", "TABLE")
        if reader.keyword() != "FROM" or reader.keyword(-1) != "DISTINCT":
            return reader.text[start : reader.end_before()]
        reader.at += 1


def parse_delete(reader: StatementReader, ctes: str = "") -> Statement:
    """`DELETE FROM name [[AS] alias] [WHERE condition]`"""
    _no_ctes(ctes, "DELETE")
    _no_clauses_of_queries(reader)
    reader.expect("DELETE", "FROM")
    name = reader.parts()
    alias = read_alias(reader)
    condition = _over(name, alias, reader.until()) if reader.accept("WHERE") else None
    reader.finish()
    return Delete(name, alias, condition)


def parse_update(reader: StatementReader, ctes: str = "") -> Statement:
    """`UPDATE name [[AS] alias] SET column = expression, ... [WHERE condition]`"""
    _no_ctes(ctes, "UPDATE")
    _no_clauses_of_queries(reader)
    reader.expect("UPDATE")
    name = reader.parts()
    alias = read_alias(reader)
    reader.expect("SET")
    assignments = _assignments(reader, name, alias, "WHERE")
    condition = _over(name, alias, reader.until()) if reader.accept("WHERE") else None
    reader.finish()
    return Update(name, assignments, alias, condition)


def _no_clauses_of_queries(reader: StatementReader) -> None:
    """Refuse LIMIT and ORDER BY in DELETE and UPDATE, where Spark has none either; the condition's parser would misread them."""
    depth = 0
    for one, following in itertools.pairwise(reader.tokens):
        depth += (one.keyword == "(") - (one.keyword == ")")
        limits = one.keyword == "LIMIT" and following.kind is TokenKind.NUMBER
        if depth == 0 and (limits or (one.keyword in ("ORDER", "SORT") and following.keyword == "BY")):
            message = f"{reader.keyword()} with {one.keyword} is not supported"
            raise UnsupportedSqlError(f"{message}: name the rows in the condition, by a sub-query if need be")


def _assignments(reader: StatementReader, name: Parts, alias: str | None, *ends: str) -> Assignments:
    found: list[tuple[str, str]] = []
    while not found or reader.accept(","):
        column = _own_column(reader, name, alias)
        if not reader.accept_any(("=", "==")):
            raise reader.refusal("= of an assignment")
        found.append((column, _over(name, alias, reader.until(",", *ends))))
    doubled = next((column for index, (column, _) in enumerate(found) if any(_overlap(column, one) for one, _ in found[:index])), None)
    if doubled is not None:
        raise UnsupportedSqlError(f"the column {doubled} is assigned twice", column=doubled)
    return tuple(found)


def _overlap(one: str, other: str) -> bool:
    """True if two paths are equal, or one is inside the other."""
    return f"{one.lower()}.".startswith(f"{other.lower()}.") or f"{other.lower()}.".startswith(f"{one.lower()}.")


def _over(name: Parts, alias: str | None, expression: str) -> str:
    """`expression` over the target `name`, known by its alias or last part."""
    return expression if alias is not None else requalify(expression, name, name[-1])


def _own_column(reader: StatementReader, name: Parts, alias: str | None) -> str:
    """A column of the target or a nested field, with or without the alias or name in front."""
    parts = plain(tuple(reader.path().split(".")))
    prefixes: list[Parts] = [(alias.lower(),)] if alias else [folded(name), folded(name)[-1:]]
    for prefix in prefixes:
        if len(parts) > len(prefix) and folded(parts)[: len(prefix)] == prefix:
            return ".".join(parts[len(prefix) :])
    return ".".join(parts)


def parse_truncate(reader: StatementReader) -> Statement:
    """`TRUNCATE TABLE name [PARTITION (..)]`"""
    reader.expect("TRUNCATE", "TABLE")
    name = reader.parts()
    partition: tuple[tuple[str, Value], ...] = ()
    if reader.accept("PARTITION"):
        partition, dynamic = reader.partition()
        if dynamic:
            raise reader.refusal("a value for each partition column")
    reader.finish()
    return Truncate(name, partition)


def parse_merge(reader: StatementReader, ctes: str = "") -> Statement:
    """`MERGE [WITH SCHEMA EVOLUTION] INTO name [alias] USING source [alias] ON condition WHEN ... THEN ...`"""
    _no_ctes(ctes, "MERGE")
    reader.expect("MERGE")
    evolution = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    name = reader.parts()
    alias = read_alias(reader)
    reader.expect("USING")
    source, source_name, source_alias = _merge_source(reader)
    if alias is None and source_alias is None and source_name is not None and source_name[-1].lower() == name[-1].lower():
        raise UnsupportedSqlError(f"target and source of MERGE are both called {name[-1]}; give them aliases")
    sides = _Sides(name, alias, source_name if source_alias is None else None)
    reader.expect("ON")
    condition = sides.over(reader.until("WHEN"))
    clauses: list[MergeClause] = []
    while reader.accept("WHEN"):
        clauses.append(_merge_clause(reader, sides))
    if not clauses:
        raise reader.refusal("WHEN of MERGE")
    reader.finish()
    shown = source_alias or (source_name[-1] if source_name else None)
    return Merge(name, source, condition, tuple(clauses), alias, shown, evolution)


def _merge_source(reader: StatementReader) -> tuple[str, Parts | None, str | None]:
    """Text, name (None for a query) and alias of the source."""
    start = reader.offset
    name = None if reader.skip_group() else reader.parts("a source")
    text = reader.text[start : reader.end_before()]
    return text, name, read_alias(reader)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two relations of a MERGE's expressions. `source`: its name, if it has no alias."""

    name: Parts
    alias: str | None
    source: Parts | None

    def over(self, expression: str) -> str:
        text = _over(self.name, self.alias, expression)
        return text if self.source is None else requalify(text, self.source, self.source[-1])


def _merge_clause(reader: StatementReader, sides: _Sides) -> MergeClause:
    when = "matched"
    if reader.accept("NOT"):
        reader.expect("MATCHED")
        by = reader.accept_any(("SOURCE", "TARGET")) if reader.accept("BY") else "TARGET"
        when = "not_matched_by_source" if by == "SOURCE" else "not_matched"
    else:
        reader.expect("MATCHED")
    condition = sides.over(reader.until("THEN")) if reader.accept("AND") else None
    reader.expect("THEN")
    action = reader.accept_any(("UPDATE", "DELETE", "INSERT")).lower()
    if not action or (action == "insert") != (when == "not_matched"):
        raise reader.refusal(f"an action for WHEN {when.replace('_', ' ').upper()}")
    assignments = _merge_assignments(reader, sides, action)
    if assignments is not None:
        assignments = tuple((column, sides.over(text)) for column, text in assignments)
    return MergeClause(when, action, condition, assignments)


def _merge_assignments(reader: StatementReader, sides: _Sides, action: str) -> Assignments | None:
    if action == "delete":
        return ()
    if action == "update":
        reader.expect("SET")
        return None if reader.accept("*") else _assignments(reader, sides.name, sides.alias, "WHEN")
    if reader.accept("*"):
        return None
    reader.expect("(")
    columns: list[str] = []
    while not columns or reader.accept(","):
        columns.append(_own_column(reader, sides.name, sides.alias))
    reader.expect(")")
    reader.expect("VALUES", "(")
    values: list[str] = []
    while not values or reader.accept(","):
        values.append(reader.until(","))
    reader.expect(")")
    if len(columns) != len(values):
        raise UnsupportedSqlError(f"INSERT of MERGE names {len(columns)} columns and gives {len(values)} values")
    return tuple(zip(columns, values, strict=True))


def parse_call(reader: StatementReader) -> Statement:
    """`CALL [system.]name([name =>] literal, ...) [LIMIT n]`, and `CALL help`; dbt appends the limit to whatever it shows."""
    reader.expect("CALL")
    procedure = reader.parts("a procedure's name")[-1].lower()
    arguments = () if procedure == "help" and reader.keyword() != "(" else _call_arguments(reader)
    limit = reader.value() if reader.accept("LIMIT") else None
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise UnsupportedSqlError(f"CALL {procedure}: LIMIT {limit!r} is no whole number")
    reader.finish()
    return Call(procedure, arguments, limit)


def _call_arguments(reader: StatementReader) -> tuple[tuple[str | None, Value], ...]:
    arguments: list[tuple[str | None, Value]] = []
    reader.expect("(")
    while not reader.accept(")"):
        if arguments:
            reader.expect(",")
        token = reader.peek()
        named = token is not None and token.kind in (TokenKind.WORD, TokenKind.QUOTED) and reader.keyword(1) in ("=>", "=")
        key = reader.identifier("an argument's name").lower() if named else None
        reader.at += named
        arguments.append((key, reader.value()))
    return tuple(arguments)


def _no_ctes(ctes: str, verb: str) -> None:
    if ctes:
        raise UnsupportedSqlError(f"WITH before {verb} on a table of the engine is not supported; put the query into a sub-query instead")
