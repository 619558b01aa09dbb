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
{% macro _generate_null_safe_surrogate_key(fields) %}md5(coalesce(cast({{ fields[0] }} as string), 'null')){% endmacro %}
{% macro sets(a_query, b_query, columns) %}
  with {{ adapter.dispatch('_generate_set_results', 'audit_helper')(a_query, b_query, [columns[0]], columns, none) }}
  select array((select count(*) from a_intersect_b), (select count(*) from a_except_b), (select count(*) from b_except_a)) as found
{% endmacro %}
{% macro databricks___generate_set_results(a_query, b_query, keys, columns, event_time) %} the package's own {% endmacro %}
""",
    "dbt_expectations": """
{% macro regexp_instr(source_value, regexp, position=1, occurrence=1, is_raw=False, flags="") %}
  {{ adapter.dispatch('regexp_instr', 'dbt_expectations')(source_value, regexp, position, occurrence, is_raw, flags) }}
{% endmacro %}
{% macro default__regexp_instr(source_value, regexp, position, occurrence, is_raw, flags) %} the package's own {% endmacro %}
{% macro most_common(model, column, values, type="decimal") %}
  {{ return(adapter.dispatch('test_expect_column_most_common_value_to_be_in_set', 'dbt_expectations')(
      model, column, values, 1, false, type, none)) }}
{% endmacro %}
{% macro default__test_expect_column_most_common_value_to_be_in_set(model, column, values, n, quoted, type, condition) %}
  select count(*) from {{ model }} where cast({{ column }} as {{ type }}) in ({{ values | join(', ') }})
{% endmacro %}
""",
    "dbt_utils": """
{% macro deduplicate(relation, partition_by, order_by) %}
  {{ return(adapter.dispatch('deduplicate', 'dbt_utils')(relation, partition_by, order_by)) }}
{% endmacro %}
{% macro default__deduplicate(relation, partition_by, order_by) %} the package's own {% endmacro %}
{% macro databricks__deduplicate(relation, partition_by, order_by) %} the package's own {% endmacro %}
{% macro width_bucket(expr, low, high, number) %}
  {{ return(adapter.dispatch('width_bucket', 'dbt_utils')(expr, low, high, number)) }}
{% endmacro %}
{% macro default__width_bucket(expr, low, high, number) %} the package's own {% endmacro %}
{% macro unpivot(relation, cast_to='varchar') %}
  {{ return(adapter.dispatch('unpivot', 'dbt_utils')(relation, cast_to, [], [], 'f', 'v', false)) }}
{% endmacro %}
{% macro default__unpivot(relation, cast_to, exclude, remove, field_name, value_name, quote_identifiers) %}
  select cast(1.5 as {{ cast_to }}) as {{ value_name }} from {{ relation }}
{% endmacro %}
{% macro not_accepted(model, column_name, values, quote=true) %}
  {{ return(adapter.dispatch('test_not_accepted_values', 'dbt_utils')(model, column_name, values, quote)) }}
{% endmacro %}
{% macro default__test_not_accepted_values(model, column_name, values, quote) %} the package's own {% endmacro %}
""",
    "for_databricks": """
{% macro one() %}{{ return(adapter.dispatch('one', 'for_databricks')()) }}{% endmacro %}
{% macro two() %}{{ return(adapter.dispatch('two', 'for_databricks')()) }}{% endmacro %}
{% macro three() %}{{ return(adapter.dispatch('three', 'for_databricks')()) }}{% endmacro %}
{% macro databricks__one() %}databricks{% endmacro %}
{% macro default__one() %}default{% endmacro %}
{% macro databricks__two() %}databricks{% endmacro %}
{% macro spark__two() %}spark{% endmacro %}
{% macro default__three() %}default{% endmacro %}
{% macro snowflake__three() %}snowflake{% endmacro %}
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

    def test_a_package_is_asked_for_databricks_behind_spark_and_before_its_default(self, project):
        found = [self.value(f"select '{{{{ for_databricks.{name}() }}}}' as found") for name in ("one", "two", "three")]
        assert found == ["databricks", "spark", "default"]

    ROWS = (
        "(select * from values (1, null, 'b', 2), (1, 7, 'a', 1), (2, null, null, 9), (null, 3, 'x', 1), (null, 4, 'x', 2)"
        " as t(id, n, s, rn))"
    )

    def test_of_rows_with_nulls_one_is_kept_of_each_key_and_with_the_columns_that_it_has(self, project):
        inner = f'dbt_utils.deduplicate("{self.ROWS}", "id", "s, rn desc")'
        found = self.value(f"select to_json(sort_array(collect_list(struct(*)))) from ({{{{ {inner} }}}})")
        assert json.loads(found) == [
            {"n": 4, "s": "x", "rn": 2},
            {"id": 1, "n": 7, "s": "a", "rn": 1},
            {"id": 2, "rn": 9},
        ]
        by_two = f'dbt_utils.deduplicate("{self.ROWS}", "id, s", "n")'
        assert self.value(f"select count(*) from ({{{{ {by_two} }}}})") == 4

    def test_rows_whose_values_are_in_other_columns_are_not_the_same(self, project):
        a = "select 1 as id, 'x' as p, cast(null as string) as q union all select 2, 'y', 'z' union all select 2, null, null"
        b = "select 1 as id, cast(null as string) as p, 'x' as q union all select 2, null, null union all select 2, 'y', 'z'"
        found = self.value(f"""{{{{ audit_helper.sets("{a}", "{b}", ["id", "p", "q"]) }}}}""")
        assert json.loads(str(found)) == [2, 1, 1]

    def test_buckets_are_counted_from_the_least_value(self, project):
        edges = [self.value(f'select {{{{ dbt_utils.width_bucket("{value}", 5, 20, 3) }}}}') for value in (1, 5, 9.99, 10, 20, "null")]
        assert edges == [0, 1, 1, 2, 4, None]

    def test_values_with_backslashes_are_refused_and_numbers_keep_their_fractions(self, project):
        rows = "(select explode(array(concat('a', char(92), 'b'), concat('it', char(39), 's'), null)) as v)"
        call = f"""dbt_utils.not_accepted("{rows}", "v", ["a\\\\b", "it's", "c"])"""
        assert self.value(f"select count(*) from ({{{{ {call} }}}})") == 2
        numbers = "(select * from values (0.4), (0.5), (1) as t(v))"
        assert self.value(f"""{{{{ dbt_expectations.most_common("{numbers}", "v", ["0.5", "0"]) }}}}""") == 1
        assert self.value("""{{ dbt_utils.unpivot("(select 1)") }}""") == "1.5"
