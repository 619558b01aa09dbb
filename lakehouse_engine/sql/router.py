"""Routes a statement: to Spark unchanged, to Spark with its reads bound, or to the engine as a parsed statement.

The engine runs a statement whose target is a relation of the warehouse, or that makes one: CREATE SCHEMA, a persistent CREATE VIEW, and
CREATE TABLE without a provider or with the engine's.
"""

from __future__ import annotations

from collections.abc import Callable

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import significant
from lakehouse_engine.sql.grammar.parsers.clone import is_clone, parse_clone
from lakehouse_engine.sql.grammar.parsers.ddl import (
    ENGINE_PROVIDERS,
    SCHEMA_WORDS,
    parse_alter,
    parse_comment,
    parse_create_schema,
    parse_create_table,
    parse_create_table_like,
    parse_create_view,
    parse_drop,
    parse_drop_schema,
)
from lakehouse_engine.sql.grammar.parsers.dml import (
    parse_call,
    parse_delete,
    parse_insert,
    parse_merge,
    parse_multi_insert,
    parse_truncate,
    parse_update,
)
from lakehouse_engine.sql.grammar.parsers.materialized import is_materialized, parse_materialized
from lakehouse_engine.sql.grammar.parsers.show import parse_describe, parse_refresh, parse_show, parse_use
from lakehouse_engine.sql.grammar.parsers.upkeep import (
    parse_analyze,
    parse_index,
    parse_optimize,
    parse_repair,
    parse_restore,
    parse_show_indexes,
    parse_vacuum,
)
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.references import Parts, ReferenceKind, Scan, plain
from lakehouse_engine.sql.grammar.statements import Explain, Passthrough, Query, Statement

Knows = Callable[[Parts], bool]

_ON_TARGET: dict[str, Callable[[StatementReader], Statement]] = {
    "DROP": parse_drop,
    "ALTER": parse_alter,
    "TRUNCATE": parse_truncate,
    "COMMENT": parse_comment,
    "DESCRIBE": parse_describe,
    "DESC": parse_describe,
    "SHOW": parse_show,
    "REFRESH": parse_refresh,
    "ANALYZE": parse_analyze,
    "MSCK": parse_repair,
    "REPAIR": parse_repair,
}
_AFTER_CTES: dict[str, Callable[[StatementReader, str], Statement]] = {
    "INSERT": parse_insert,
    "FROM": parse_multi_insert,
    "DELETE": parse_delete,
    "UPDATE": parse_update,
    "MERGE": parse_merge,
}


_UPKEEP: dict[str, Callable[[StatementReader], Statement]] = {"VACUUM": parse_vacuum, "RESTORE": parse_restore}
"""Verbs that Spark lacks; they are about the engine's tables."""


def route(text: str, knows: Knows) -> Statement:
    """Classify one statement. `knows` says whether a name (as written, without `spark_catalog`) is a table or view of the warehouse.

    Binds and runs nothing. Raises `UnsupportedSqlError` for an unsupported statement on the engine's relations.
    """
    _check_single(text)
    found = scan(text)
    reader = StatementReader.over(text)
    statement = _always_ours(reader) or _by_target(reader, found, knows)
    if statement is not None:
        return statement
    reads = [one for one in found.references if one.kind is not ReferenceKind.TARGET]
    known = [one for one in reads if one.kind is ReferenceKind.FUNCTION or knows(plain(one.parts))]
    if known and reader.keyword() == "CREATE" and _creates(reader) == "FUNCTION":
        name = ".".join(known[0].parts)
        raise UnsupportedSqlError(f"CREATE FUNCTION whose body reads {name} would keep one snapshot for ever; read the table in the query")
    if known and reader.keyword() == "EXPLAIN":
        return Explain(text)
    return Query(text) if known or found.obstacles else Passthrough(text)


def _check_single(text: str) -> None:
    """Refuse several statements in one text. A final `;`, a script (BEGIN ... END) and a setting's value do not count."""
    tokens = significant(text)
    if not tokens or tokens[0].keyword in ("BEGIN", "SET"):
        return
    ends = [number for number, token in enumerate(tokens) if token.keyword == ";"]
    if ends and any(token.keyword != ";" for token in tokens[ends[0] :]):
        following = next(token for token in tokens[ends[0] :] if token.keyword != ";")
        raise UnsupportedSqlError(
            f"a text with several statements is not supported: another one starts at offset {following.start} ({following.text} ...);"
            " run them one by one"
        )


def _always_ours(reader: StatementReader) -> Statement | None:
    """Statements that belong to the engine whatever names they hold."""
    verb, second = reader.keyword(), reader.keyword(1)
    if is_materialized(reader):
        return parse_materialized(reader)
    if verb == "CREATE":
        return _create(reader)
    if verb == "DROP" and second in SCHEMA_WORDS:
        return parse_drop_schema(reader)
    if verb == "CALL":
        return parse_call(reader)
    if verb in _UPKEEP:
        return _UPKEEP[verb](reader)
    if verb == "SHOW" and second in ("INDEX", "INDEXES"):
        return parse_show_indexes(reader)
    if verb == "OPTIMIZE":
        return parse_optimize(reader)
    if verb == "COMMENT" and second == "ON" and reader.keyword(2) in SCHEMA_WORDS and _is_local(reader, reader.keyword(2)):
        return parse_comment(reader)
    if verb == "USE" and second != "CATALOG":
        return parse_use(reader)
    if verb == "SHOW" and second in ("TABLES", "TABLE", "VIEWS", "SCHEMAS", "DATABASES", "NAMESPACES"):
        return parse_show(reader)
    if verb in ("DESCRIBE", "DESC") and second in SCHEMA_WORDS:
        return parse_describe(reader)
    return None


def _creates(reader: StatementReader) -> str:
    """The noun that CREATE makes; empty for a temporary one."""
    words = [reader.keyword(ahead) for ahead in range(1, 6)]
    if words[:2] == ["OR", "REPLACE"]:
        words = words[2:]
    return "" if words[0] in ("TEMPORARY", "TEMP", "GLOBAL") and words[1:2] != ["FUNCTION"] else words[0]


def _create(reader: StatementReader) -> Statement | None:
    noun = _creates(reader)
    if noun in SCHEMA_WORDS:
        return parse_create_schema(reader)
    if noun == "VIEW" and _is_local(reader, "VIEW"):
        return parse_create_view(reader)
    if noun == "TABLE" and is_clone(reader) and _is_local(reader, "TABLE"):
        return parse_clone(reader)
    if noun == "TABLE" and _is_local(reader, "TABLE") and _provider(reader) in ("", *ENGINE_PROVIDERS):
        return parse_create_table(reader)
    return None


def _is_local(reader: StatementReader, noun: str) -> bool:
    """True if the name after the noun, of a relation or schema, has no catalog."""
    start = reader.at
    while reader.keyword() != noun:
        reader.at += 1
    reader.at += 1
    reader.accept("IF", "NOT", "EXISTS")
    chain = reader.chain()
    reader.at = start
    return chain is None or len(plain(chain[0])) < (2 if noun in SCHEMA_WORDS else 3)


def foreign_table(text: str) -> tuple[Parts, str] | None:
    """Name and provider of the table in CREATE TABLE, if the provider is not the engine's; None for other statements."""
    reader = StatementReader.over(text)
    if reader.keyword() != "CREATE" or _creates(reader) not in ("TABLE", "EXTERNAL"):
        return None
    provider = _provider(reader)
    while reader.keyword() != "TABLE":
        reader.at += 1
    reader.at += 1
    reader.accept("IF", "NOT", "EXISTS")
    chain = reader.chain()
    is_foreign = chain is not None and provider not in ("", "LIKE", *ENGINE_PROVIDERS)
    return (plain(chain[0]), provider) if is_foreign and chain is not None else None


def _provider(reader: StatementReader) -> str:
    """Provider of CREATE TABLE in upper case; STORED for Hive's formats, LIKE for CREATE TABLE ... LIKE; empty if none is given."""
    depth = 0
    for ahead in range(len(reader.tokens)):
        word = reader.keyword(ahead)
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("AS", "SELECT", "WITH"):
            return ""
        if depth == 0 and word in ("STORED", "EXTERNAL", "LIKE"):
            return word
        if depth == 0 and word == "USING":
            start, reader.at = reader.at, reader.at + ahead + 1
            chain = reader.chain()
            reader.at = start
            return ".".join(chain[0]).upper() if chain else ""
    return ""


def _by_target(reader: StatementReader, found: Scan, knows: Knows) -> Statement | None:
    """Statements whose target is known; None if no target is."""
    targets = [one for one in found.references if one.kind is ReferenceKind.TARGET and knows(plain(one.parts))]
    if not targets:
        return None
    name = ".".join(targets[0].parts)
    if reader.keyword() == "CREATE" and _provider(reader) == "LIKE" and _is_local(reader, "TABLE"):
        return parse_create_table_like(reader)
    obstacle = next((one.obstacle for one in targets if one.obstacle), None)
    if obstacle:
        raise UnsupportedSqlError(f"{obstacle} is not supported on {name}", relation=name)
    ctes = _skip_ctes(reader)
    verb = reader.keyword()
    others = [one for one in found.references if one.kind is ReferenceKind.TARGET and one not in targets]
    if others or (len(targets) > 1 and verb != "FROM"):
        also = f", of which {'.'.join(others[0].parts)} is none of the engine's," if others else ""
        raise UnsupportedSqlError(f"several targets in one statement{also} are not supported on {name}", relation=name)
    if verb in ("CREATE", "DROP", "REFRESH") and reader.keyword(1) == "INDEX":
        return parse_index(reader, name)
    if verb in _AFTER_CTES:
        return _AFTER_CTES[verb](reader, ctes)
    if verb in _ON_TARGET and not ctes:
        return _ON_TARGET[verb](reader)
    foreign = foreign_table(reader.text) if verb == "CREATE" else None
    if foreign is not None:
        message = f"{name} is there already, as a Hudi table of the warehouse, and cannot be made anew with {foreign[1].lower()}"
        raise UnsupportedSqlError(f"{message}; write USING hudi, or drop it first", relation=name)
    raise UnsupportedSqlError(f"{verb} {reader.keyword(1)} is not supported on {name}, which is a relation of the engine", relation=name)


def _skip_ctes(reader: StatementReader) -> str:
    """Step over `WITH name AS (...), ...`; returns its text with the white space after it."""
    if not reader.accept("WITH"):
        return ""
    start = reader.tokens[reader.at - 1].start
    reader.accept("RECURSIVE")
    while True:
        reader.identifier("a CTE's name")
        while not reader.done and reader.keyword() not in (",", "INSERT", "FROM", "DELETE", "UPDATE", "MERGE"):
            if not reader.skip_group():
                reader.at += 1
        if not reader.accept(","):
            return reader.text[start : reader.offset]
