"""Adjusts dbt-core's snapshot queries: Spark compares and unites structs by the position of their members."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.columns import quoted, resolve
from lakehouse_engine import api

if TYPE_CHECKING:
    import pyarrow as pa


_WORD = re.compile(r"[A-Za-z_]\w*|`[^`]+`")


def check_named_columns(name: str, config: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Raise `DbtDatabaseError` for columns that a snapshot's configs name and its query lacks. Spark checks expressions."""
    for key in ("unique_key", "updated_at", "check_cols"):
        value = config.get(key)
        wanted = [value] if isinstance(value, str) else list(value or ())
        if key != "check_cols" or value != "all":
            resolve([one for one in wanted if _WORD.fullmatch(one)], columns, key, name)


def by_members(table: str, sql: str, schema: pa.Schema, rows: Callable[[], Any], *, unites: bool) -> str:
    """The query with struct members in the order of the table's schema, also inside lists and maps.

    `rows` are the query's rows. Raises `DbtDatabaseError` for members that the table lacks if stored rows are united with the query's
    (`unites`), because Spark would match them by position.
    """
    import pyarrow.types as pat

    if not any(pat.is_nested(column.type) for column in schema):
        return sql
    frame = rows()
    met = {name.lower(): one for name, one in api.frames.members(schema, frame, follows=False).items()}
    new = [name for name in frame.columns if name.lower() in met and met[name.lower()].grows]
    if unites and new:
        raise DbtDatabaseError(
            f"{table}: {new[0]} has members that the table does not have, which with hard_deletes 'new_record' cannot be put together with"
            f" its rows; add them to the table first: alter table {table} add columns ({new[0]}.<member> <type>)"
        )
    if not met:
        return sql
    values = [met[name.lower()].of_given(quoted(name)) if name.lower() in met else quoted(name) for name in frame.columns]
    columns = ", ".join(f"{value} as {quoted(name)}" for value, name in zip(values, frame.columns, strict=True))
    return f"select {columns} from (\n{sql}\n) as __dbt_rows"
