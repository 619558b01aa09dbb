"""`lakehouse.at` and `lakehouse.changes` in models."""

from __future__ import annotations

import pytest
from dbt.tests.util import relation_from_name, run_dbt
from dbt_common.exceptions import DbtRuntimeError

from lakehouse_engine.table import HoodieTable

ORDERS = """
{{ config(materialized='incremental', unique_key='id') }}
select * from values {% if is_incremental() %}(1, 'changed'), (3, 'new'){% else %}(1, 'one'), (2, 'two'){% endif %} as t(id, name)
"""
BEFORE = "{{ config(materialized='table') }} select o.id, o.name from {{ lakehouse.at(ref('orders'), '-1') }} as o where o.id < 3"
NEWS = (
    "{{ config(materialized='table') }} select id, name, _hoodie_commit_time as changed_at"
    " from {{ lakehouse.changes(ref('orders'), begin='-1') }}"
)


class TestTravel:
    @pytest.fixture(scope="class")
    def models(self):
        return {"orders.sql": ORDERS, "before.sql": BEFORE, "news.sql": NEWS}

    def rows(self, project, text):
        return sorted(project.run_sql(text.format(schema=project.test_schema), fetch="all"))

    def test_models_read_the_past_and_what_changed(self, project):
        run_dbt(["run", "--select", "orders"])
        run_dbt(["run"])
        assert self.rows(project, "select id, name from {schema}.before") == [(1, "one"), (2, "two")]
        assert self.rows(project, "select id, name from {schema}.news") == [(1, "changed"), (3, "new")]

    def test_points_are_settled_when_the_model_is_compiled(self, project):
        run_dbt(["run", "--select", "orders"])
        table = HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/orders")
        instant = table.timeline.completed().writes().first().requested_time
        text = "select count(*) as n from {{ lakehouse.at(ref('orders'), '" + instant + "') }}"
        compiled = run_dbt(["compile", "--inline", text]).results[0].node.compiled_code
        assert compiled.endswith(f"version as of '{instant}'")

    @pytest.mark.parametrize(("point", "reason"), [("-99", "none 99 before the newest"), ("last tuesday", "no point in time")])
    def test_a_point_that_is_none_is_refused(self, project, point, reason):
        run_dbt(["run", "--select", "orders"])
        orders = relation_from_name(project.adapter, "orders")
        with project.adapter.connection_named("test"), pytest.raises(DbtRuntimeError, match=reason):
            project.adapter.relation_at(orders, point)


EVENTS = """
{{ config(materialized='incremental', unique_key='id', event_time='happened', table_type='mor') }}
select * from values (1, timestamp '2020-01-01 00:00:00'), (2, timestamp '2020-01-02 00:00:00') as t(id, happened)
"""
OF_EACH = {
    "was": "{{ lakehouse.at(ref('events'), '-0') }}",
    "news": "{{ lakehouse.changes(ref('events')) }}",
    "base": "{{ lakehouse.read_optimized(ref('events')) }}",
}


class TestPartsOfTheInput:
    """What `--empty` and `--sample` leave of a `ref` holds for a relation at another time, too."""

    @pytest.fixture(scope="class")
    def models(self):
        body = "{{ config(materialized='table') }} select e.id from %s as e"
        return {"events.sql": EVENTS, **{f"{name}.sql": body % text for name, text in OF_EACH.items()}}

    def counts(self, project):
        return {name: project.run_sql(f"select count(*) from {project.test_schema}.{name}", fetch="one")[0] for name in OF_EACH}

    def test_empty_and_sampled_runs_read_no_more_than_they_say(self, project):
        run_dbt(["run", "--select", "events"])
        run_dbt(["run", "--exclude", "events"])
        assert self.counts(project) == {"was": 2, "news": 2, "base": 2}
        run_dbt(["run", "--exclude", "events", "--empty"])
        assert self.counts(project) == {"was": 0, "news": 0, "base": 0}
        run_dbt(["run", "--exclude", "events", "--sample", "{'start': '2020-01-02', 'end': '2020-01-03'}"])
        assert self.counts(project) == {"was": 1, "news": 1, "base": 1}
