"""The scans, as (function, column) pairs, and their SQL. No third-party imports: every contender's interpreter loads this."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Query = tuple[tuple[str, str], ...]

NARROW: Query = (("sum", "quantity"), ("sum", "price"))
"""An aggregate over 2 of the 11 columns."""

WIDE: Query = (
    ("length", "id"),
    ("sum", "customer_id"),
    ("sum", "quantity"),
    ("length", "status"),
    ("length", "city"),
    ("sum", "price"),
    ("sum", "discount"),
    ("sum", "amount"),
    ("max", "order_date"),
    ("max", "updated_at"),
    ("length", "note"),
)
"""An aggregate that has to decode every value of every column."""

SPARK_SCHEMA = (
    "id string, customer_id bigint, quantity int, status string, city string, price double, discount double, "
    "amount decimal(18,2), order_date date, updated_at timestamp, note string"
)
"""The rows' columns for Spark, so that no job is spent on finding them in file footers."""

QUERIES: dict[str, Query] = {"narrow": NARROW, "wide": WIDE}

COLUMNS = tuple(name for _, name in WIDE)
"""The columns of the benchmark's rows, in order."""


def select_list(query: Query) -> str:
    """SQL for the aggregates of `query`."""
    return ", ".join(_expression(kind, name) for kind, name in query)


def _expression(kind: str, name: str) -> str:
    if kind == "length":
        return f"sum(length({name}))"
    return f"{kind}({name})"


def plain(value: Any) -> Any:
    """A value of a result row as JSON holds it, the same from every engine."""
    if isinstance(value, Decimal):
        return str(value.quantize(Decimal("0.01")))
    if hasattr(value, "hour"):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value
