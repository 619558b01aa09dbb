"""Gives names to unnamed parameter markers (`?`), because Spark may be asked for a part of the statement only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse_engine.errors import SqlError
from lakehouse_engine.sql.grammar.lexer import significant


def with_named_markers(text: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """The text with `:_1` for its first `?`, and so on, and the values by these names.

    Raises `SqlError` if the numbers of values and markers differ, `UnsupportedSqlError` as `significant`.
    """
    markers = [token for token in significant(text) if token.keyword == "?"]
    if len(markers) != len(values):
        raise SqlError(f"the statement has {len(markers)} parameter markers (?) and {len(values)} values for them")
    pieces, position = [], 0
    for number, token in enumerate(markers, 1):
        pieces += [text[position : token.start], f":_{number}"]
        position = token.end
    return "".join([*pieces, text[position:]]), {f"_{number}": value for number, value in enumerate(values, 1)}
