"""dbt-tests-adapter: incremental."""

from __future__ import annotations

import pytest
from dbt.artifacts.schemas.results import RunStatus
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import run_dbt


class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    def fail_to_build_inc_missing_unique_key_column(self, incremental_model_name):
        """The record key belongs to the table, so the first run refuses a key that is no column, not the second."""
        run_dbt(["seed", "--select", "seed", "--full-refresh"])
        result = run_dbt(["run", "--select", incremental_model_name, "--full-refresh"], expect_pass=False).results[0]
        assert result.status == RunStatus.Error
        return result.status, result.message


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+incremental_predicates": ["id != 2"], "+incremental_strategy": "delete+insert"}}


class TestPredicatesDeleteInsert(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": {"+predicates": ["DBT_INTERNAL_DEST.id != 2"], "+incremental_strategy": "delete+insert"}}


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def input_model_sql(self):
        rows = " union all ".join(f"select {day} as id, timestamp '2020-01-0{day} 00:00:00Z' as event_time" for day in (1, 2, 3))
        return "{{ config(materialized='table', event_time='event_time') }} " + rows

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project):
        rows = "(4, timestamp '2020-01-04 00:00:00Z'), (5, timestamp '2020-01-05 00:00:00Z')"
        return f"insert into {project.test_schema}.input_model (id, event_time) values {rows}"
