"""The partitions that a condition on partition columns chooses."""

from __future__ import annotations

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.read.pruning import Scope
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.sql.binding.predicate import expression_of, predicate_of
from lakehouse_engine.sql.grammar.lexer import name_value, significant, words
from lakehouse_engine.view.table_state import TableState

_WORDS = words("AND OR IN NOT IS NULL BETWEEN TRUE FALSE DATE TIMESTAMP")


def partitions_where(state: TableState, condition: str) -> list[str]:
    """Paths of the live partitions for whose values the condition may be true.

    Raises `UnsupportedSqlError` for one that names other columns, and where it does not compare with literals of their types.
    """
    schema, fields = table_schema(state), state.config.partition_fields
    chosen, tokens = {name.lower() for name in fields}, significant(condition)
    others = [name_value(one) for one in tokens if one.is_name and one.keyword not in _WORDS and name_value(one).lower() not in chosen]
    said = expression_of(predicate_of(tokens, state.config.name, qualified=False), schema, fields)
    scope = None if said is None or others else Scope.of(state, RowFilter.of(said, schema), schema, trusted=True)
    if scope is None or scope.rules is None:
        names = ", ".join(fields) or "none, since the table has no partitions"
        raise UnsupportedSqlError(
            f"{condition!r} does not choose partitions: it has to compare partition columns ({names}) with literals of their types,"
            " joined by AND and OR",
            relation=state.config.name,
        )
    return scope.within(state.live_partitions())
