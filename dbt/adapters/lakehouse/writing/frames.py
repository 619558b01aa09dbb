"""What the writer asks of a model's rows, which are a DataFrame or a table of Arrow."""

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
"""Which stored row, and in which file."""


def columns_of(frame: Any) -> list[str]:
    """Of a DataFrame, or of a table of Arrow."""
    # A frame of Spark Connect has an attribute of any name: a column, which may be there or not.
    return list(frame.columns if hasattr(frame, "toArrow") else frame.column_names)


def types_of(frame: Any) -> dict[str, str]:
    """By their names, as a table would have them."""
    return {item.name: api.frames.stored_name(item.dataType) for item in frame.schema.fields}


def selected(frame: Any, expressions: Sequence[str]) -> Any:
    """The frame with these columns; itself where they are its own, which Spark need not analyse again."""
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
    """The rows of a query, computed once, so that two readings are the same rows: a frame of them, and a session view over it."""
    with warehouse.computed_once(frame) as rows, viewed(warehouse, rows) as name:
        yield rows, name
