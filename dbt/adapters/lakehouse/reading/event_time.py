"""Ranges of a model's event time as SQL: microbatch batches and `--sample`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

TIMES = ("date", "timestamp", "timestamp_ntz")


def bounds(column: str, kind: str | None, start: Any, end: Any) -> list[str]:
    """Conditions on a column of the Spark type `kind`; None if the type is unknown.

    Literals have the column's own type, so that the engine can skip files. For an unknown type they are text with a UTC offset: Spark turns
    it into a date if the column is one, while a timestamp literal would be compared with midnights in the session's time zone.
    """
    return [f"{column} {sign} {_literal(value, kind)}" for sign, value in ((">=", start), ("<", end)) if value]


def _literal(value: Any, kind: str | None) -> str:
    if not isinstance(value, datetime):
        return f"'{value}'"
    if kind == "date":
        return f"date '{value.date().isoformat()}'"
    return f"{'timestamp ' if kind == 'timestamp' else ''}'{value.isoformat(sep=' ')}'"
