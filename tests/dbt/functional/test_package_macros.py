"""Macros of the adapter that stand in front of those of packages: through `adapter.dispatch`, with packages of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

PACKAGES = {
    "audit_helper": """
{% macro quick_are_queries_identical(query_a, query_b, columns=[], event_time=none) %}
  {{ return(adapter.dispatch('quick_are_queries_identical', 'audit_helper')(query_a, query_b, columns, event_time)) }}
{% endmacro %}
{% macro default__quick_are_queries_identical(query_a, query_b, columns, event_time) %} the package's own {% endmacro %}
{% macro event_time_filter(bounds) %}{{ '' if bounds is none else 'where ' ~ bounds }}{% endmacro %}
{% macro _get_comparison_bounds(a, b, event_time) %}{{ return(event_time ~ ' < 3') }}{% endmacro %}
""",
    "dbt_expectations": """
{% macro regexp_instr(source_value, regexp, position=1, occurrence=1, is_raw=False, flags="") %}
  {{ adapter.dispatch('regexp_instr', 'dbt_expectations')(source_value, regexp, position, occurrence, is_raw, flags) }}
{% endmacro %}
{% macro default__regexp_instr(source_value, regexp, position, occurrence, is_raw, flags) %} the package's own {% endmacro %}
""",
}


class TestMacrosOfPackages:
    @pytest.fixture(scope="class", autouse=True)
    def installed(self, project: Any) -> None:
        root = Path(project.project_root)
        # dbt-core 1.12 wants as many packages as are asked for.
        (root / "packages.yml").write_text(json.dumps({"packages": [{"local": f"dbt_packages/{name}"} for name in PACKAGES]}))
        for name, text in PACKAGES.items():
            folder = root / "dbt_packages" / name
            (folder / "macros").mkdir(parents=True)
            (folder / "dbt_project.yml").write_text(json.dumps({"name": name, "version": "1.0", "config-version": 2}))
            (folder / "macros" / "all.sql").write_text(text)

    @staticmethod
    def value(expression: str) -> Any:
        table = run_dbt(["show", "--inline", expression]).results[0].agate_table
        return table.rows[0][0]

    @pytest.mark.parametrize(
        ("a", "b", "same"),
        [
            ("select 1 as x, 'a' as y", "select 1 as x, 'a' as y", True),
            ("select 1 as x, 'a' as y", "select 1 as x, 'b' as y", False),
            ("select 1 as x, 'a' as y", "select 1 as x, 'a' as y union all select 1, 'a'", False),
            ("select 1 as x, cast(null as int) as y", "select cast(null as int) as x, 1 as y", False),
            ("select 1 as x, map('k', 1) as y", "select 1 as x, map('k', 1) as y", True),
            ("select 1 as x, 2 as y where false", "select 1 as x, 2 as y where false", True),
            ("select 1 as x, 2 as y union all select 2, 1", "select 2 as x, 1 as y union all select 1, 2", True),
        ],
    )
    def test_queries_are_compared_by_rows_nulls_and_number(self, project, a, b, same):
        found = self.value(f'{{{{ audit_helper.quick_are_queries_identical("{a}", "{b}", ["x", "y"]) }}}}')
        assert found is same

    def test_queries_are_compared_within_the_bounds_of_an_event_time(self, project):
        a, b = "select 1 as x union all select 7", "select 1 as x union all select 8"
        assert self.value(f'{{{{ audit_helper.quick_are_queries_identical("{a}", "{b}", ["x"], "x") }}}}') is True

    @pytest.mark.parametrize(
        ("call", "place"),
        [
            (r"""regexp_instr("'ab12'", "\\d", is_raw=true)""", 3),
            (r"""regexp_instr("'it''s'", "'", is_raw=true)""", 3),
            (r"""regexp_instr("'abC'", "[A-Z]")""", 3),
            (r"""regexp_instr("'abC'", "[A-Z]", flags='i')""", 1),
            (r"""regexp_instr("'abC'", "[A-Z]", flags='c')""", 3),
            (r"""regexp_instr("'abc'", "[A-Z]")""", 0),
        ],
    )
    def test_regular_expressions_keep_their_backslashes_and_flags(self, project, call, place):
        assert self.value(f"select {{{{ dbt_expectations.{call} }}}} as place") == place

    def test_a_place_that_spark_cannot_begin_at_is_refused(self, project):
        call = """select {{ dbt_expectations.regexp_instr("'a'", "a", 2) }}"""
        with pytest.raises(DbtRuntimeError, match="position and occurrence are 1"):
            run_dbt(["show", "--inline", call])
