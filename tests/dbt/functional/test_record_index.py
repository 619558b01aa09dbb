"""Models with `index: record_level` and `metadata`: their tables have what is asked for, and are merged by it."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table

ORDERS = """
{{ config(materialized='incremental', unique_key='id', partition_by='day', index='record_level', metadata=['column_stats'],
          table_type=var('kind', 'cow'), table_version=9) }}
select * from values
{% if is_incremental() %}(1, 'tue', 'moved'), (3, 'mon', 'new'){% else %}(1, 'mon', 'one'), (2, 'mon', 'two'){% endif %}
as t(id, day, name)
"""


class TestRecordIndex:
    @pytest.fixture(scope="class")
    def models(self):
        return {"orders.sql": ORDERS, "orders_mor.sql": ORDERS.replace("'cow'", "'mor'")}

    def test_models_are_merged_by_it(self, project):
        for _ in range(2):
            run_dbt(["run"])
        for name in ("orders", "orders_mor"):
            table = HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}")
            assert table.config.metadata_partitions == ("column_stats", "files", "record_index")
            report = check_metadata_table(table.state)
            assert (report.findings, report.keys) == ((), 3)
            found = sorted(project.run_sql(f"select id, day, name from {project.test_schema}.{name}", fetch="all"))
            assert found == [(1, "tue", "moved"), (2, "mon", "two"), (3, "mon", "new")]
