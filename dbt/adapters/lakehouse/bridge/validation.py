"""What configs and statements say, by the engine's own parsers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

from lakehouse_engine import api
from lakehouse_engine.api.errors import OptionError, SqlError
from lakehouse_engine.api.names import META_COLUMNS, check_catalog_name

if TYPE_CHECKING:
    from lakehouse_engine.api.warehouse import StoredFunction

_LEAVING = frozenset({
    *("SELECT", "WITH", "VALUES", "FROM", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "SHOW"),
    *("INSERT", "UPDATE", "DELETE", "MERGE"),
})  # fmt: skip
"""First words of queries and of statements that change rows. All others may change the session: SET, USE, CREATE, DECLARE, ADD, ..."""


def is_meta_column(name: str) -> bool:
    """Whether a column is one of the five that each commit writes."""
    return name.strip("`").lower() in META_COLUMNS


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
    kinds = api.warehouse
    given = tuple(kinds.Parameter(*one) for one in parameters)
    return kinds.StoredFunction(kinds.Language(language), given, returns, body, aggregate, deterministic, entry_point)


def assignments_of(action: str, target: str) -> tuple[tuple[str, str], ...]:
    """The columns that `update set ...` sets, and what to. Raises `DbtConfigError` for any other text."""
    try:
        return api.clauses.assignments_of(action, target)
    except SqlError as error:
        raise DbtConfigError(error.message) from error


def leaves_session(sql: str) -> bool:
    """Whether a statement leaves the Spark session that it runs in as it is: its settings, views, functions and variables."""
    return api.sql.first_word(sql) in _LEAVING


def catalog_name(given: Any) -> str:
    """The name of a catalog in lower case. Raises `DbtConfigError`."""
    try:
        return check_catalog_name(given)
    except OptionError as error:
        raise DbtConfigError(error.message) from error
