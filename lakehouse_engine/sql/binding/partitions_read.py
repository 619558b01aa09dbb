"""Partitions to which a condition limits a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import PartitionValueError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.read.pruning import path_rules
from lakehouse_engine.sql.binding.literals import typed_literal
from lakehouse_engine.sql.grammar.brackets import parts
from lakehouse_engine.sql.grammar.lexer import Token, name_value, significant, words
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.partitions import partition_paths_of

_MOST = 1000
"""Number of partitions above which the whole table counts as read."""
_OTHERWISE = words("OR BETWEEN CASE NOT ! | ||")


def partitions_read(condition: str | None, table: str, state: TableState, *, qualified: bool = False) -> frozenset[str] | None:
    """Paths of the partitions that can hold rows matching `condition`; None if it does not say plainly.

    Plain means a conjunction in which every partition column equals a literal of its type, or is in a list of them. `table` is the table's
    name in the condition; with `qualified`, columns without it are not the table's.
    """
    fields = state.config.partition_fields
    if condition is None or not fields:
        return None
    schema = table_schema(state)
    types = {field.name.lower(): field.type for field in schema}
    values: dict[str, list[Any]] = {}
    for conjunct in _conjuncts(significant(condition)):
        found = _equality(conjunct, table.lower(), types, qualified)
        if found is not None:
            values.setdefault(*found)
    if any(name.lower() not in values for name in fields):
        return None
    chosen = list(product(*(values[name.lower()] for name in fields)))
    if len(chosen) > _MOST or path_rules(state, schema) is None:  # a row may be in another partition than its columns say
        return None
    try:
        return frozenset(partition_paths_of(state.config, [dict(zip(fields, one, strict=True)) for one in chosen], schema))
    except PartitionValueError:
        return None  # a value that no row can have, which a condition may compare with


def _conjuncts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Parts joined by the top-level AND; empty if another operator could bind them (OR, BETWEEN ... AND, CASE)."""
    return [] if any(token.keyword in _OTHERWISE for token in tokens) else parts(tokens, "AND")


def _equality(tokens: list[Token], table: str, types: Mapping[str, pa.DataType], qualified: bool) -> tuple[str, list[Any]] | None:
    """Column (lower case) and values of `column = literal`, `literal = column`, `column in (literal, ...)`."""
    if len(tokens) > 2 and tokens[-2].keyword in ("=", "==") and tokens[-1].is_name and not tokens[0].is_name:
        tokens = [tokens[-1], tokens[-2], *tokens[:-2]]
    column, rest = _column(tokens, table, qualified)
    if column is None or column not in types or not rest:
        return None
    literals = _literals(rest)
    values = None if literals is None else [_value(one, types[column]) for one in literals]
    return None if values is None or None in values else (column, values)


def _column(tokens: list[Token], table: str, qualified: bool) -> tuple[str | None, list[Token]]:
    if len(tokens) > 2 and tokens[0].is_name and tokens[1].keyword == "." and tokens[2].is_name:
        return (name_value(tokens[2]).lower(), tokens[3:]) if name_value(tokens[0]).lower() == table else (None, [])
    return (name_value(tokens[0]).lower(), tokens[1:]) if tokens and tokens[0].is_name and not qualified else (None, [])


def _literals(tokens: list[Token]) -> list[list[Token]] | None:
    if tokens[0].keyword in ("=", "=="):
        return [tokens[1:]]
    if tokens[0].keyword != "IN" or len(tokens) < 4 or tokens[1].keyword != "(" or tokens[-1].keyword != ")":
        return None
    return parts(tokens[2:-1], ",")


def _value(tokens: Sequence[Token], kind: pa.DataType) -> Any:
    """The literal's value if it has the column's type, so that equal in SQL means the same path; else None."""
    is_path = pat.is_string(kind) or pat.is_date(kind) or pat.is_integer(kind)
    found = typed_literal(tokens, kind) if is_path else None
    # An empty text has the path of null.
    return None if found is None or found.as_py() == "" else found.as_py()
