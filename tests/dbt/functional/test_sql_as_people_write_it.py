"""SQL and configs that people bring along: meta columns, empty lists, statements of other engines in hooks."""

from __future__ import annotations

import pytest

from tests.dbt.functional.test_increments import MERGE, Changing
from tests.dbt.functional.test_lakehouse import values

NEWS = """
{{ config(materialized='incremental', unique_key='id', merge_exclude_columns=['_hoodie_commit_time'], post_hook=[
    'analyze table {{ this }} compute statistics', 'msck repair table {{ this }}', 'vacuum {{ this }} retain 168 hours',
    'optimize {{ this }}', 'optimize {{ this }} zorder by (id, loaded_at)']) }}
with news as (select * from {{ ref('m') }})
select *, _hoodie_commit_time as loaded_at from news
{% if is_incremental() %} where _hoodie_commit_time > (select max(loaded_at) from {{ this }}) {% endif %}
"""


class TestSqlAsPeopleWriteIt(Changing):
    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "select 1 as id", "staged.sql": "select * from {{ ref('m') }}", "news.sql": NEWS}

    def test_models_go_on_from_a_commit_time_and_have_hooks_of_other_engines(self, project):
        self.first(project, MERGE, values("id, v", "1, 'a'", "2, 'b'"))
        self.write(project, MERGE, values("id, v", "2, 'c'"))
        self.run()
        first, second = self.commits(project)[-2:]
        found = project.run_sql(f"select id, v, loaded_at from {project.test_schema}.news order by id", fetch="all")
        assert found == [(1, "a", first), (2, "c", second)]
        staged = f"select id, _hoodie_commit_time from {project.test_schema}.staged where _hoodie_record_key = '2'"
        assert project.run_sql(staged, fetch="all") == [(2, second)]
        everything = f"select * from {project.test_schema}.staged where _hoodie_commit_time > '' order by id"
        assert project.run_sql(everything, fetch="all") == [(1, "a"), (2, "c")]

    @pytest.mark.parametrize("policy", ["ignore", "append_new_columns", "sync_all_columns", "fail"])
    def test_nulls_empty_lists_and_maps_come_into_the_stored_columns(self, project, policy):
        config = f"{MERGE}, on_schema_change='{policy}'"
        typed = "array('a') as tags, map('k', 1) as counts, named_struct('a', 1, 'b', array('x')) as s, 'x' as v"
        more = "select 2, array('b'), map(), named_struct('a', 2, 'b', array()), 'y'"
        self.first(project, config, f"select 1 as id, {typed} union all {more}")
        empty = "array() as tags, map() as counts, named_struct('a', null, 'b', array(null)) as s, null as v"
        self.write(project, config, f"select 2 as id, {empty} union all select 3, array(), map(), null, null")
        self.run()
        rows = self.rows(project, "id, size(tags), size(counts), s.a, size(s.b), v")
        assert rows == [(1, 1, 1, 1, 1, "x"), (2, 0, 0, None, 1, None), (3, 0, 0, None, None, None)]

    @pytest.mark.parametrize("strategy", ["append", "delete+insert", "insert_overwrite", "replace_where"])
    def test_other_strategies_take_empty_lists_too(self, project, strategy):
        key = "unique_key='id', " if strategy == "delete+insert" else ""
        where = ", incremental_predicates=['id = 2']" if strategy == "replace_where" else ""
        config = f"materialized='incremental', {key}incremental_strategy='{strategy}'{where}"
        self.first(project, config, "select 1 as id, array('a') as tags")
        self.write(project, config, "select 2 as id, array() as tags")
        self.run()
        kept = [] if strategy == "insert_overwrite" else [(1, 1)]
        assert self.rows(project, "id, size(tags)") == [*kept, (2, 0)]
