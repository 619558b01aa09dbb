from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.condition import row_condition

TABLE = pa.table(
    {
        "n": [1, 2, None],
        "S": ["a", "it's", None],
        "x": [0.5, -2.0, None],
        "d": [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None],
        "t": pa.array([dt.datetime(2026, 1, day, tzinfo=dt.timezone.utc) for day in (1, 2)] + [None], pa.timestamp("us", "UTC")),
        "e": [Decimal("1.50"), Decimal("2.50"), None],
        "b": [True, False, None],
        "in": [1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n = 1", [0]),
        ("n == 1 and s = 'a'", [0]),
        ("N <> 1", [1]),
        ("n >= 1 AND n < 2", [0]),
        ("s = 'it''s'", [1]),
        ('`S` in ("a", "b")', [0]),
        ("s not in ('a')", [1]),
        ("s is null", [2]),
        ("s is not null -- a comment", [0, 1]),
        ("x < -1.5", [1]),
        ("x > .25", [0]),
        ("d > '2026-01-01'", [1]),
        ("d = date '2026-01-01'", [0]),
        ("t >= timestamp '2026-01-02 00:00:00'", [1]),
        ("t < '2026-01-02T01:00:00+02:00'", [0]),
        ("e = 1.5", [0]),
        ("b = true", [0]),
        ("b != TRUE", [1]),
        ("`in` in (3)", [2]),
    ],
)
def test_a_condition_is_true_of_the_rows_that_sql_says(text: str, rows: list[int]) -> None:
    numbered = TABLE.append_column("number", pa.array([0, 1, 2]))
    assert numbered.filter(row_condition(text, TABLE.schema))["number"].to_pylist() == rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a condition is a column"),
        ("n", "a condition is a column"),
        ("n = 1 or n = 2", "compared with a literal"),
        ("not n = 1", "no column 'not'"),
        ("(n = 1)", "a condition is a column"),
        ("n between 1 and 2", "operators are"),
        ("n = 1.5", "no value of the column 'n'"),
        ("n = '1'", "compared with a literal"),
        ("n = null", "compared with a literal"),
        ("n = x", "compared with a literal"),
        ("n = 1 + 1", "compared with a literal"),
        ("n = 9223372036854775808", "no value of the column 'n'"),
        ("e = 1.555", "no value of the column 'e'"),
        ("s = 1", "compared with a literal"),
        ("s = date '2026-01-01'", "the column 'S' is string"),
        ("d = '2026-13-01'", "no value of the column 'd'"),
        ("nope = 1", "no column 'nope'"),
        ("n in ()", "IN takes literals"),
        ("n in (1, )", "compared with a literal"),
        ("n like '1%'", "operators are"),
        ("upper(s) = 'A'", "no column 'upper'"),
        ("s = 'a", "is not closed"),
        ("n = 1 and", "a condition is a column"),
    ],
)
def test_what_is_no_plain_condition_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        row_condition(text, TABLE.schema)
    assert reason in caught.value.message
