"""Start of a statement: its verb and its target relations, by the grammar of each verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, Token
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.grammar.relations import read_alias

Target = tuple[Parts, int, int, str | None]
"""Parts, start and end offset, alias."""

_EXPLAIN_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST", "ANALYZE")
_NOT_RELATIONS = ("FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "PROCEDURE")
_QUERY_WORDS = QUERY_WORDS - {"TABLE"} | {"("}


@dataclass(frozen=True, slots=True)
class Head:
    """`statement_follows`: another statement starts at the cursor (EXPLAIN). `merge`: the next USING names a source.

    `options`: WITH (...) follows the target.
    """

    targets: tuple[Target, ...] = ()
    obstacles: tuple[str, ...] = ()
    merge: bool = False
    statement_follows: bool = False
    options: bool = False


def read_head(cursor: Cursor) -> Head:
    """Read a statement's verb and targets. The cursor stays in front of a query or INSERT."""
    reader = _READERS.get(cursor.keyword())
    return reader(cursor) if reader is not None else Head()


def read_insert_target(cursor: Cursor) -> Head:
    """Read `INSERT (INTO | OVERWRITE) [TABLE] name [WITH (..)] [PARTITION (..)] [IF NOT EXISTS] [(columns)] [BY NAME]`.

    `INSERT OVERWRITE DIRECTORY` has no target.
    """
    cursor.at += 2
    if cursor.keyword() == "DIRECTORY" or (cursor.keyword() == "LOCAL" and cursor.keyword(1) == "DIRECTORY"):
        return Head()
    if cursor.keyword() == "TABLE" and _is_name(cursor.peek(1)) and cursor.keyword(1) not in ("VALUES", "SELECT"):
        cursor.at += 1
    head = _target(cursor)
    if not head.targets:
        return head
    options = cursor.keyword() == "WITH" and cursor.keyword(1) == "("
    if options:
        cursor.at += 1
        cursor.skip_group()
    if cursor.accept("PARTITION"):
        cursor.skip_group()
    cursor.accept("IF", "NOT", "EXISTS")
    if cursor.keyword() == "(" and cursor.keyword(1) not in (*_QUERY_WORDS, "TABLE"):
        cursor.skip_group()
    cursor.accept("BY", "NAME")
    return Head(head.targets, options=options)


def _is_name(token: Token | None) -> bool:
    return token is not None and token.is_name


def _target(cursor: Cursor, *, aliased: bool = False) -> Head:
    """The relation at the cursor as the only target."""
    if cursor.keyword() == "IDENTIFIER" and cursor.keyword(1) == "(":
        return Head(obstacles=("IDENTIFIER(...) as a relation",))
    chain = cursor.chain()
    if chain is None:
        return Head()
    alias = read_alias(cursor) if aliased else None
    return Head(targets=((chain[0], chain[1], chain[2][-1], alias),))


def _explain(cursor: Cursor) -> Head:
    cursor.at += 1
    cursor.accept_any(_EXPLAIN_MODES)
    return Head(statement_follows=True)


def _begin(cursor: Cursor) -> Head:
    cursor.at += 1
    return Head(statement_follows=True)


def _delete(cursor: Cursor) -> Head:
    return _target(cursor, aliased=True) if cursor.accept("DELETE", "FROM") else Head()


def _update(cursor: Cursor) -> Head:
    cursor.at += 1
    return _target(cursor, aliased=True)


def _merge(cursor: Cursor) -> Head:
    cursor.at += 1
    cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    if not cursor.accept("INTO"):
        return Head()
    head = _target(cursor, aliased=True)
    return Head(head.targets, head.obstacles, merge=True)


def _describe(cursor: Cursor) -> Head:
    cursor.at += 1
    if cursor.accept("QUERY") or cursor.keyword() in _QUERY_WORDS:
        return Head()
    if cursor.keyword() in _NOT_RELATIONS and _is_name(cursor.peek(1)):
        return _skip_statement(cursor)
    # A column of a table called detail is never dotted.
    detail = cursor.keyword() == "DETAIL" and cursor.keyword(2) == "."
    if detail or (cursor.keyword() == "HISTORY" and _is_name(cursor.peek(1))):
        cursor.at += 1
        return _skip_statement(cursor, _target(cursor))
    if cursor.keyword() == "TABLE" and _is_name(cursor.peek(1)):
        cursor.at += 1
    if cursor.keyword() in ("EXTENDED", "FORMATTED") and _is_name(cursor.peek(1)):
        cursor.at += 1
    return _skip_statement(cursor, _target(cursor))


def _show(cursor: Cursor) -> Head:
    cursor.at += 1
    head = Head()
    if cursor.accept("CREATE", "TABLE") or cursor.accept("TBLPROPERTIES") or cursor.accept("PARTITIONS"):
        head = _target(cursor)
    elif cursor.accept_any(("INDEX", "INDEXES")) and cursor.accept_any(("IN", "FROM", "ON")):
        cursor.accept("TABLE")
        head = _target(cursor)
    elif cursor.accept("COLUMNS") and cursor.accept_any(("IN", "FROM")):
        head = _target(cursor)
        if cursor.accept_any(("IN", "FROM")) and len(head.targets) == 1 and len(head.targets[0][0]) == 1:
            schema = cursor.chain()
            parts, start, end, alias = head.targets[0]
            if schema is not None:
                head = Head(targets=(((*schema[0], *parts), start, end, alias),))
    return _skip_statement(cursor, head)


def _cache(cursor: Cursor) -> Head:
    cursor.at += 1
    cursor.accept("LAZY")
    if not cursor.accept("TABLE"):
        return Head()
    head = _target(cursor)
    if cursor.accept("OPTIONS"):
        cursor.skip_group()
    return head


def _drop(cursor: Cursor) -> Head:
    cursor.at += 1
    if cursor.accept("INDEX"):
        return _index(cursor)
    if not cursor.accept_any(("TABLE", "VIEW")):
        return _skip_statement(cursor)
    cursor.accept("IF", "EXISTS")
    return _skip_statement(cursor, _target(cursor))


def _index(cursor: Cursor) -> Head:
    """`(CREATE | DROP | REFRESH) INDEX [IF [NOT] EXISTS] name ON [TABLE] table ...`"""
    while not cursor.done and not cursor.accept("ON"):
        cursor.at += 1
    cursor.accept("TABLE")
    return _skip_statement(cursor, _target(cursor))


def _alter(cursor: Cursor) -> Head:
    cursor.at += 1
    if not cursor.accept_any(("TABLE", "VIEW")):
        return _skip_statement(cursor)
    cursor.accept("IF", "EXISTS")
    head = _target(cursor)
    return head if cursor.keyword() == "AS" else _skip_statement(cursor, head)


def _create(cursor: Cursor) -> Head:
    cursor.at += 1
    if cursor.accept("INDEX"):
        return _index(cursor)
    cursor.accept("OR", "REPLACE")
    cursor.accept("GLOBAL")
    cursor.accept_any(("TEMPORARY", "TEMP"))
    cursor.accept("EXTERNAL")
    if not cursor.accept_any(("TABLE", "VIEW")):
        return Head()
    cursor.accept("IF", "NOT", "EXISTS")
    head = _target(cursor)
    if cursor.accept("LIKE"):
        return Head((*head.targets, *_target(cursor).targets), head.obstacles)
    return head


def _replace(cursor: Cursor) -> Head:
    cursor.at += 1
    return _target(cursor) if cursor.accept("TABLE") else Head()


def _maintain(cursor: Cursor) -> Head:
    """REFRESH, TRUNCATE, ANALYZE, REPAIR, MSCK REPAIR and UNCACHE: a table's name, followed by nothing that could read a relation."""
    cursor.accept("MSCK")
    verb = cursor.keyword()
    cursor.at += 1
    if verb == "REFRESH" and cursor.keyword() == "INDEX" and _is_name(cursor.peek(1)):
        return _index(cursor)
    if not cursor.accept("TABLE") and (verb != "REFRESH" or cursor.keyword() == "FUNCTION"):
        return _skip_statement(cursor)
    cursor.accept("IF", "EXISTS")
    return _skip_statement(cursor, _target(cursor))


def _load(cursor: Cursor) -> Head:
    """`LOAD DATA [LOCAL] INPATH 'path' [OVERWRITE] INTO TABLE name [PARTITION (..)]`"""
    while not cursor.done and not cursor.accept("INTO", "TABLE"):
        cursor.at += 1
    return _skip_statement(cursor, _target(cursor))


def _comment(cursor: Cursor) -> Head:
    if cursor.accept("COMMENT", "ON", "TABLE"):
        return _skip_statement(cursor, _target(cursor))
    if cursor.accept("COMMENT", "ON", "COLUMN"):
        chain = cursor.chain()
        targets = ((chain[0][:-1], chain[1], chain[2][-2], None),) if chain is not None and len(chain[0]) > 1 else ()
        return _skip_statement(cursor, Head(targets=targets))
    return _skip_statement(cursor)


def _skip_statement(cursor: Cursor, head: Head | None = None) -> Head:
    while not cursor.done and cursor.keyword() != ";":
        cursor.at += 1
    return head or Head()


def _no_relations(cursor: Cursor) -> Head:
    return _skip_statement(cursor)


_READERS: dict[str, Callable[[Cursor], Head]] = {
    "EXPLAIN": _explain,
    "BEGIN": _begin,
    "DELETE": _delete,
    "UPDATE": _update,
    "MERGE": _merge,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _show,
    "CACHE": _cache,
    "DROP": _drop,
    "ALTER": _alter,
    "CREATE": _create,
    "REPLACE": _replace,
    "LOAD": _load,
    "COMMENT": _comment,
    **dict.fromkeys(("REFRESH", "TRUNCATE", "ANALYZE", "REPAIR", "MSCK", "UNCACHE"), _maintain),
    **dict.fromkeys(("USE", "CALL", "GRANT", "REVOKE", "ADD", "LIST", "CLEAR", "RESET", "VACUUM", "RESTORE"), _no_relations),
}
