"""Ranges of a model's event time as SQL: the batches of microbatch models, and what `--sample` leaves of a relation."""

from __future__ import annotations

from datetime import datetime
from typing import Any

TIMES = ("date", "timestamp", "timestamp_ntz")


def bounds(column: str, kind: str | None, start: Any, end: Any) -> list[str]:
    """Conditions on a column of the Spark type `kind`; None where that is not known.

    Literals have the column's own type, by which the engine rules files out. Elsewhere they are text with its offset from UTC: Spark makes
    a date of it where the column is one, while a timestamp would be compared with the dates' midnights in the session's time zone.
    """
    return [f"{column} {sign} {_literal(value, kind)}" for sign, value in ((">=", start), ("<", end)) if value]


def _literal(value: Any, kind: str | None) -> str:
    if not isinstance(value, datetime):
        return f"'{value}'"
    if kind == "date":
        return f"date '{value.date().isoformat()}'"
    return f"{'timestamp ' if kind == 'timestamp' else ''}'{value.isoformat(sep=' ')}'"
