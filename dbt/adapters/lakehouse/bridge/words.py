"""What the engine knows of options, SQL text, types and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.later import Later
from lakehouse_engine import errors, options
from lakehouse_engine.model import keys

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_engine.catalog.functions import StoredFunction

META_COLUMNS = keys.META_COLUMNS
DELETED_AT = keys.DELETED_AT
"""The column that says when a row was deleted softly."""

_attached = Later("lakehouse_engine.catalog.attached")
_dml = Later("lakehouse_engine.sql.grammar.parsers.dml")
_functions = Later("lakehouse_engine.catalog.functions")
_lexer = Later("lakehouse_engine.sql.grammar.lexer")
_reader = Later("lakehouse_engine.sql.grammar.reader")
_schema = Later("lakehouse_engine.spark.schema")
_spark_types = Later("lakehouse_engine.record.spark_types")
_split = Later("lakehouse_engine.sql.grammar.split")

_LEAVING = frozenset({
    *("SELECT", "WITH", "VALUES", "FROM", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "SHOW"),
    *("INSERT", "UPDATE", "DELETE", "MERGE"),
})  # fmt: skip
"""First words of queries and of statements that change rows. All others may change the session: SET, USE, CREATE, DECLARE, ADD, ..."""


def is_meta_column(name: str) -> bool:
    """Whether a column is one of the five that each commit writes."""
    return name.strip("`").lower() in META_COLUMNS


def option_findings(hoodie: Mapping[str, Any]) -> list[str]:
    """What is wrong with `hoodie.*` options: each key and value by itself, and all together where each is right."""
    found = [text for key, value in hoodie.items() if (text := _refusal(options.check_known, {key: value}))]
    if found:
        return found
    together = (_refusal(read, hoodie) for read in (options.WriteOptions.read, options.ServiceOptions.read))
    return [text for text in together if text]


def _refusal(check: Callable[[Mapping[str, Any]], object], given: Mapping[str, Any]) -> str | None:
    try:
        check(given)
    except (errors.OptionError, errors.UnavailableError) as error:
        return str(error)
    return None


def function_of(
    language: str,
    parameters: Sequence[tuple[str, str, str | None]],
    returns: str,
    body: str,
    *,
    aggregate: bool,
    deterministic: bool | None,
    entry_point: str,
) -> StoredFunction:
    """A function of (name, Spark type, default) parameters. Raises `SqlError`."""
    given = tuple(_functions.Parameter(*one) for one in parameters)
    kind = _functions.Language(language)
    found: StoredFunction = _functions.StoredFunction(kind, given, returns, body, aggregate, deterministic, entry_point)
    return found


def split_statements(text: str) -> list[str]:
    """The statements of a text that holds several, by the engine's lexer."""
    found: list[str] = _split.split_statements(text)
    return found


def assignments_of(action: str, target: str) -> tuple[tuple[str, str], ...]:
    """The columns that `update set ...` sets, and what to, as MERGE has it for a target called `target`; its name before them is left out.

    Raises `DbtConfigError` for any other text.
    """
    text = f"merge into {target} using __source on true when not matched by source then {action}"
    try:
        [clause] = _dml.parse_merge(_reader.StatementReader.over(text)).clauses
    except (errors.SqlError, ValueError) as error:
        raise DbtConfigError(f"'{action}' is no list of assignments: {error}") from error
    if clause.action != "update" or not clause.assignments:
        raise DbtConfigError(f"'{action}' is no list of assignments")
    return tuple(clause.assignments)


def quote_string(text: str) -> str:
    """A text as a literal of SQL."""
    found: str = _lexer.quote_string(text)
    return found


def takes_limit(sql: str) -> bool:
    """Whether LIMIT behind a text limits what it answers with."""
    return bool(_split.takes_limit(sql))


def leaves_session(sql: str) -> bool:
    """Whether a statement leaves the Spark session that it runs in as it is: its settings, views, functions and variables."""
    return _split.first_word(sql) in _LEAVING


def spark_name(kind: pa.DataType) -> str:
    """The name that Spark prints for a column of this Arrow type."""
    name: str = _spark_types.spark_name(kind)
    return name


def catalog_name(given: Any) -> str:
    """The name of a catalog in lower case. Raises `DbtConfigError`."""
    try:
        return str(_attached.check_catalog_name(given))
    except errors.OptionError as error:
        raise DbtConfigError(error.message) from error


def stored_name(kind: Any) -> str:
    """The name of the type that a table has for a column of this Spark type: TINYINT and SMALLINT are stored as INT, texts without their
    collation. Its own name where no table can hold it.
    """
    try:
        found: str = _schema.to_spark_type(_schema.to_arrow_type(kind, "")).simpleString()
    except errors.UnsupportedTypeError:
        return str(kind.simpleString())
    return found


def type_names() -> dict[str, pa.DataType]:
    """Spark's types without parameters, by every name of theirs in lower case, as tables store them."""
    return {name: kind.stored for name, kind in _spark_types.BY_NAME.items()}
