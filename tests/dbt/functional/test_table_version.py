"""Models in tables of Hudi version 9: made, merged, read as of, snapshotted; the version of a table stays."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from lakehouse_engine.table import HoodieTable

ORDERS = """
{{ config(materialized='incremental', unique_key='id', ordering_fields='ts', table_type='mor', table_version=9) }}
select * from values
{% if is_incremental() %}(1, 2, 'changed'), (2, 0, 'late'), (3, 2, 'new'){% else %}(1, 1, 'one'), (2, 1, 'two'){% endif %}
as t(id, ts, name)
"""
BEFORE = "{{ config(materialized='table', table_version='8') }} select id, name from {{ lakehouse.at(ref('orders'), '-1') }}"
NEWS = "{{ config(materialized='table') }} select id, name from {{ lakehouse.changes(ref('orders'), begin='-1') }}"
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['name'], table_version=9) }}
select id, name from {{ ref('orders') }}
{% endsnapshot %}
"""


class TestVersions:
    @pytest.fixture(scope="class")
    def models(self):
        return {"orders.sql": ORDERS, "before.sql": BEFORE, "news.sql": NEWS}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": SNAPSHOT}

    def table(self, project, name: str) -> HoodieTable:
        return HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}")

    def rows(self, project, text: str) -> list[tuple]:
        return sorted(project.run_sql(text.format(schema=project.test_schema), fetch="all"))

    def test_models_are_in_the_version_that_they_ask_for(self, project):
        run_dbt(["run", "--select", "orders"])
        run_dbt(["snapshot"])
        run_dbt(["run"])
        run_dbt(["snapshot"])
        versions = {name: int(self.table(project, name).config.version) for name in ("orders", "before", "news", "kept")}
        assert versions == {"orders": 9, "before": 8, "news": 6, "kept": 9}
        assert self.rows(project, "select id, name from {schema}.orders") == [(1, "changed"), (2, "two"), (3, "new")]
        assert self.rows(project, "select id, name from {schema}.before") == [(1, "one"), (2, "two")]
        assert self.rows(project, "select id, name from {schema}.news") == [(1, "changed"), (3, "new")]
        assert self.rows(project, "select id, name, dbt_valid_to is null from {schema}.kept") == [
            (1, "changed", True),
            (1, "one", False),
            (2, "two", True),
            (3, "new", True),
        ]

    def test_operations_work_on_it(self, project):
        run_dbt(["run", "--select", "orders"])
        run_dbt(["run", "--select", "orders"])
        run_dbt(["run-operation", "savepoint", "--args", "{model: orders, name: kept}"])
        run_dbt(["run-operation", "compact", "--args", "{model: orders}"])
        run_dbt(["run", "--select", "orders", "--full-refresh"])
        assert self.rows(project, "select id, name from {schema}.orders") == [(1, "one"), (2, "two")]
        run_dbt(["run-operation", "restore", "--args", "{model: orders, savepoint: kept}"])
        assert self.rows(project, "select id, name from {schema}.orders") == [(1, "changed"), (2, "two"), (3, "new")]
        run_dbt(["run-operation", "verify", "--args", "{model: orders}"])


class TestAnotherVersion:
    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='incremental', unique_key='id', table_version=var('version', none)) }} select 1 as id"
        return {"m.sql": config}

    def test_a_table_keeps_its_version_until_it_is_made_anew(self, project):
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{version: 6}"])
        refused = run_dbt(["run", "--vars", "{version: 9}"], expect_pass=False)
        assert "table_version is 9 but the table has version 6" in refused.results[0].message
        run_dbt(["run", "--vars", "{version: 9}", "--full-refresh"])
        run_dbt(["run"])
        table = HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/m")
        assert int(table.config.version) == 9

    def test_a_table_is_brought_to_another_version_by_an_operation(self, project):
        run_dbt(["run", "--vars", "{version: 9}", "--full-refresh"])
        path = f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/m"
        run_dbt(["run-operation", "downgrade", "--args", "{model: m, to: 6, dry_run: true}"])
        assert int(HoodieTable.open(path).config.version) == 9
        run_dbt(["run-operation", "downgrade", "--args", "{model: m, to: 6}"])
        assert int(HoodieTable.open(path).config.version) == 6
        run_dbt(["run", "--vars", "{version: 6}"])
        run_dbt(["run-operation", "upgrade", "--args", "{model: m}"])
        assert int(HoodieTable.open(path).config.version) == 9
        run_dbt(["run", "--vars", "{version: 9}"])
        assert project.run_sql(f"select id from {project.test_schema}.m", fetch="all") == [(1,)]
