"""What the writer asks of a model's rows, which are a DataFrame or a table of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt.adapters.lakehouse.columns import quoted


def columns_of(frame: Any) -> list[str]:
    """Of a DataFrame, or of a table of Arrow."""
    # A frame of Spark Connect has an attribute of any name: a column, which may be there or not.
    return list(frame.columns if hasattr(frame, "toArrow") else frame.column_names)


def types_of(frame: Any) -> dict[str, str]:
    return {item.name: item.dataType.simpleString() for item in frame.schema.fields}


def selected(frame: Any, expressions: Sequence[str]) -> Any:
    """The frame with these columns; itself where they are its own, which Spark need not analyse again."""
    own = [f"{quoted(name)} as {quoted(name)}" for name in columns_of(frame)]
    return frame if own == list(expressions) else frame.selectExpr(*expressions)
