"""What dbt's macros for all databases answer where those of dbt-spark lose something, or fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt

LATE = "timestamp'2026-01-31 10:20:30.123456'"


def answer(project: Any, **expressions: str) -> dict[str, Any]:
    """Of one query, whose columns are the expressions: dbt's Jinja, in which `LATE` is that time."""
    query = "select " + ", ".join(f"cast({text} as string) as {name}" for name, text in expressions.items()).replace("LATE", LATE)
    results = run_dbt(["show", "--inline", query, "--output", "json"]).results
    row = results[0].agate_table.rows[0]
    return dict(row.items())


class TestDates:
    def test_dateadd_keeps_what_is_below_a_second(self, project):
        assert answer(
            project,
            month="{{ dbt.dateadd('month', 1, \"LATE\") }}",
            quarter="{{ dbt.dateadd('quarter', -1, \"LATE\") }}",
            week="{{ dbt.dateadd('week', '1 + 1', \"LATE\") }}",
            hour="{{ dbt.dateadd('hour', '1 + 1', \"LATE\") }}",
            milli="{{ dbt.dateadd('millisecond', 500, \"LATE\") }}",
            micro="{{ dbt.dateadd('microsecond', -456, \"LATE\") }}",
            text="{{ dbt.dateadd('day', 1, \"'2026-01-31'\") }}",
            nothing="{{ dbt.dateadd('day', 1, 'cast(null as date)') }}",
        ) == {
            "month": "2026-02-28 10:20:30.123456",
            "quarter": "2025-10-31 10:20:30.123456",
            "week": "2026-02-14 10:20:30.123456",
            "hour": "2026-01-31 12:20:30.123456",
            "milli": "2026-01-31 10:20:30.623456",
            "micro": "2026-01-31 10:20:30.123",
            "text": "2026-02-01 00:00:00",
            "nothing": None,
        }

    def test_datediff_counts_borders(self, project):
        pairs = {
            "month": ("2026-01-31", "2026-02-28"),
            "quarter": ("2025-12-31", "2026-03-31"),
            "week": ("2026-02-01", "2026-01-31"),
            "hour": ("2026-01-31 10:00:00", "2026-01-31 10:59:59"),
            "minute": ("2026-01-31 10:00:59", "2026-01-31 09:59:00"),
            "millisecond": ("2026-01-31 10:00:00.9", "2026-01-31 10:00:01.1001"),
            "microsecond": ("2026-01-31 10:00:00.9", "2026-01-31 10:00:01.1001"),
        }
        texts = {part: f"{{{{ dbt.datediff(\"'{a}'\", \"'{b}'\", '{part}') }}}}" for part, (a, b) in pairs.items()}
        expected = {"month": 1, "quarter": 1, "week": -1, "hour": 0, "minute": -1, "millisecond": 200, "microsecond": 200100}
        assert {part: int(value) for part, value in answer(project, **texts).items()} == expected


class TestTexts:
    def test_split_part_takes_the_delimiter_as_it_stands_and_any_number(self, project):
        assert answer(
            project,
            two="{{ dbt.split_part(\"'a||b|c||d'\", \"'||'\", 2) }}",
            last="{{ dbt.split_part(\"'a..b.c'\", \"'..'\", -1) }}",
            beyond="concat('<', {{ dbt.split_part(\"'a,b'\", \"','\", 5) }}, '>')",
        ) == {"two": "b|c", "last": "b.c", "beyond": "<>"}

    @pytest.mark.parametrize("order", ["none", "'order by v'"])
    def test_listagg_of_no_values_is_null_with_a_limit_too(self, project, order):
        some = "{{ dbt.listagg('v', \"'-'\", ORDER, 2) }}".replace("ORDER", order)
        assert answer(
            project,
            nulls=f"(select {some} from values (cast(null as string)), (null) as t(v))",
            nothing=f"(select {some} from values ('a') as t(v) where false)",
            some=f"(select {some} from values ('a'), ('b'), ('c') as t(v))",
            empty=f"(select concat('<', {some}, '>') from values ('') as t(v))",
        ) == {"nulls": None, "nothing": None, "some": "a-b", "empty": "<>"}

    def test_safe_cast_of_what_is_no_value_of_the_type_is_null(self, project):
        text = "{{ dbt.safe_cast(\"concat('a', 'b')\", dbt.type_int()) }}"
        assert answer(project, bad=text, good="{{ dbt.safe_cast(\"concat('1', '2')\", dbt.type_int()) }}") == {"bad": None, "good": "12"}


class TestFixturesThatAreNoValues:
    @pytest.fixture(scope="class")
    def models(self):
        given = [{"input": "ref('source')", "rows": [{"id": "one"}]}]
        test = {"name": "fixtures", "model": "tested", "given": given, "expect": {"rows": [{"id": None}]}}
        return {
            "source.sql": "select 1 as id",
            "tested.sql": "select id from {{ ref('source') }}",
            "tests.yml": json.dumps({"unit_tests": [test]}),
        }

    def test_they_are_errors(self, project):
        run_dbt(["run"])
        assert [str(result.status) for result in run_dbt(["test"], expect_pass=False).results] == ["error"]
