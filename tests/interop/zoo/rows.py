"""Batches of the zoo: small, typed, and the same for everybody who is given the same numbers and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, and its value for the number of a row and the seed of its batch. `since` is the first seed that has it."""

    type: pa.DataType
    value: Callable[[int, int], Any]
    since: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of a kind of table."""

    columns: Mapping[str, Column]

    def batch(self, numbers: Sequence[int], seed: int) -> pa.Table:
        columns = {name: column for name, column in self.columns.items() if column.since <= seed}
        return pa.table(
            {name: pa.array([column.value(number, seed) for number in numbers], column.type) for name, column in columns.items()}
        )

    def but(self, **columns: Column | None) -> Rows:
        """With these columns instead or besides, and without those that are None."""
        merged = {name: column for name, column in {**self.columns, **columns}.items() if column is not None}
        return replace(self, columns=merged)


def instant_of(number: int, seed: int) -> datetime:
    return datetime(2024, 3, 1, 22, 30, tzinfo=timezone.utc) + timedelta(hours=7 * number, microseconds=1001 * seed)


def moment_key(number: int, _: int) -> datetime:
    return datetime(1999, 12, 31, 23, 59, 59, 123456, tzinfo=timezone.utc) + timedelta(hours=13 * number)


STRING = Column(pa.string(), lambda number, _: f"k{number:02d}")
INSTANT = pa.timestamp("us", tz="UTC")

PLAIN = Rows(
    {
        "id": STRING,
        "ts": Column(pa.int64(), lambda _, seed: 100 + 10 * seed),
        "name": Column(pa.string(), lambda number, seed: None if number % 5 == 4 else f"n{number}-{seed}"),
        "n": Column(pa.int32(), lambda number, seed: None if (number + seed) % 4 == 3 else number * 100 + seed),
        "amount": Column(pa.decimal128(10, 2), lambda number, seed: Decimal(number * 100 + seed) / 100),
        "day": Column(pa.date32(), lambda number, _: date(2024, 2, 27) + timedelta(days=number % 4)),
        "at": Column(INSTANT, instant_of),
        "part": Column(pa.string(), lambda number, _: "ab"[number % 2]),
    }
)
"""Ordering values rise with every batch, so that no merge rule loses a row of a later one."""


def _late(number: int, seed: int) -> int:
    return 50 if seed >= 2 and number % 3 == 0 else 100 + 10 * seed


LATE = PLAIN.but(
    ts=Column(pa.int64(), _late),
    name=Column(pa.string(), lambda number, seed: None if (number + seed) % 2 else f"n{number}-{seed}"),
    n=Column(pa.int32(), lambda number, seed: None if (number + seed) % 3 == 0 else number * 100 + seed),
)
"""From the third batch on every third row comes late, and nulls move about: every merge rule gives other rows."""


def keyed(kind: pa.DataType, value: Callable[[int, int], Any]) -> Rows:
    return PLAIN.but(id=Column(kind, value))


def partitioned(kind: pa.DataType, values: Sequence[Any]) -> Rows:
    """The partition of a row is one of `values`, by its number."""
    return PLAIN.but(part=Column(kind, lambda number, _: values[number % len(values)]))


def marked(name: str, kind: pa.DataType, value: Callable[[int, int], Any], rows: Rows = PLAIN) -> Rows:
    return rows.but(**{name: Column(kind, value)})
