"""What the writer asks of a model's rows, a DataFrame or an Arrow table."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.columns import quoted
from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

PLACE = ("_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name")
"""Meta columns that identify a stored row and its file."""


def columns_of(frame: Any) -> list[str]:
    """Column names of a DataFrame or Arrow table."""
    # A Spark Connect frame answers to any attribute name with a column, which may not exist.
    return list(frame.columns if hasattr(frame, "toArrow") else frame.column_names)


def types_of(frame: Any) -> dict[str, str]:
    """Spark types by column name, as a table would have them."""
    return {item.name: api.frames.stored_name(item.dataType) for item in frame.schema.fields}


def selected(frame: Any, expressions: Sequence[str]) -> Any:
    """The frame with these columns; the frame itself if it has exactly these, which spares Spark an analysis."""
    own = [f"{quoted(name)} as {quoted(name)}" for name in columns_of(frame)]
    return frame if own == list(expressions) else frame.selectExpr(*expressions)


@contextmanager
def viewed(warehouse: Warehouse, frame: Any) -> Iterator[str]:
    """A session view over the frame."""
    name = f"__dbt_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        warehouse.session.catalog.dropTempView(name)


@contextmanager
def kept(warehouse: Warehouse, frame: Any) -> Iterator[tuple[Any, str]]:
    """Rows of a query, computed once so that two readings are equal: a frame, and a session view over it."""
    with warehouse.computed_once(frame) as rows, viewed(warehouse, rows) as name:
        yield rows, name
