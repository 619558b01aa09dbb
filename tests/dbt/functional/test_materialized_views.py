"""dbt-tests-adapter: materialized views; and what ours keep to themselves."""

from __future__ import annotations

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic
from dbt.tests.adapter.materialized_view.changes import (
    MaterializedViewChanges,
    MaterializedViewChangesApplyMixin,
    MaterializedViewChangesContinueMixin,
    MaterializedViewChangesFailMixin,
)
from dbt.tests.util import get_model_file, run_dbt, set_model_file
from dbt_common.exceptions import DbtConfigError

from lakehouse_engine import Lakehouse
from tests.support.connect_server import classic_only

QUERY = "select * from {{ ref('my_seed') }}"
RETENTION = "hoodie.clean.commits.retained"


def table_of(project, relation):
    return Lakehouse(project.adapter.config.credentials.warehouse).table(f"{relation.schema}.{relation.identifier}")


def kind_of(project, relation):
    schema = project.adapter.Relation.create(schema=relation.schema)
    listed = project.adapter.list_relations_without_caching(schema)
    return next((str(one.type) for one in listed if one.identifier == relation.identifier), None)


def row_count(project, relation):
    return project.run_sql(f"select count(*) from {relation}", fetch="one")[0]


class TestMaterializedViews(MaterializedViewBasic):
    @staticmethod
    def insert_record(project, table, record):
        project.run_sql(f"insert into {table} values {record}")

    @staticmethod
    def refresh_materialized_view(project, materialized_view):
        project.run_sql(f"refresh materialized view {materialized_view}")

    @staticmethod
    def query_row_count(project, relation):
        return row_count(project, relation)

    @staticmethod
    def query_relation_type(project, relation):
        return kind_of(project, relation)

    @classic_only("a client does not see whether a query is deterministic, so each refresh computes it")
    def test_a_run_without_news_makes_no_commit(self, project, my_materialized_view, my_seed):
        before = table_of(project, my_materialized_view).timeline
        (result,) = run_dbt(["run", "--models", my_materialized_view.identifier])
        assert "no new data" in result.message
        assert table_of(project, my_materialized_view).timeline == before
        self.insert_record(project, my_seed, (4, 400))
        (result,) = run_dbt(["run", "--models", my_materialized_view.identifier])
        (_, second) = table_of(project, my_materialized_view).timeline.completed().writes()
        assert result.adapter_response["instant"] == second.requested_time
        assert row_count(project, my_materialized_view) == 4


class Changes(MaterializedViewChanges):
    """An option and the query are changed where the view is, the partitions by building it anew."""

    @staticmethod
    def query_relation_type(project, relation):
        return kind_of(project, relation)

    @staticmethod
    def check_start_state(project, materialized_view):
        table = table_of(project, materialized_view)
        assert table.config.partition_fields == ()
        assert f"lakehouse.option.{RETENTION}" not in table.config.properties
        assert row_count(project, materialized_view) == 3

    @staticmethod
    def change_config_via_alter(project, materialized_view):
        text = get_model_file(project, materialized_view).replace(QUERY, f"{QUERY} where id > 1")
        options = f"materialized='materialized_view', hoodie={{'{RETENTION}': '7'}}"
        set_model_file(project, materialized_view, text.replace("materialized='materialized_view'", options))

    @staticmethod
    def check_state_alter_change_is_applied(project, materialized_view):
        assert RETENTION in str(dict(table_of(project, materialized_view).config.properties))
        assert row_count(project, materialized_view) == 2

    @staticmethod
    def change_config_via_replace(project, materialized_view):
        text = get_model_file(project, materialized_view)
        set_model_file(project, materialized_view, text.replace("materialized=", "partition_by='value', materialized="))

    @staticmethod
    def check_state_replace_change_is_applied(project, materialized_view):
        assert table_of(project, materialized_view).config.partition_fields == ("value",)


class TestChangesApplied(Changes, MaterializedViewChangesApplyMixin):
    pass


class TestChangesLeft(Changes, MaterializedViewChangesContinueMixin):
    pass


class TestChangesRefused(Changes, MaterializedViewChangesFailMixin):
    pass


KEYED = """
{{ config(materialized='materialized_view', unique_key='id', ordering_fields='value', table_type='mor', on_duplicate_source_keys='error') }}
select * from {{ ref('my_seed') }}
"""
INCREMENTAL = "{{ config(materialized='incremental', unique_key='id') }} select id, value from {{ ref('my_seed') }}"


class TestOwnConfigs:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"my_seed.csv": "id,value\n1,100\n2,200\n"}

    @pytest.fixture(scope="class")
    def models(self):
        return {"keyed.sql": KEYED, "reader.sql": "select count(*) as n from {{ ref('keyed') }}"}

    @pytest.fixture
    def keyed(self, project):
        return project.adapter.Relation.create(schema=project.test_schema, identifier="keyed", type=RelationType.MaterializedView)

    @pytest.fixture(autouse=True)
    def as_it_was(self, project, keyed):
        yield
        set_model_file(project, keyed, KEYED)
        project.run_sql(f"drop schema if exists {project.test_schema} cascade")

    def test_keys_types_and_operations(self, project, keyed):
        run_dbt(["build"])
        table = table_of(project, keyed)
        assert table.config.record_key_fields == ("id",)
        assert table.config.table_type.value == "MERGE_ON_READ"
        assert row_count(project, keyed) == 2
        run_dbt(["run-operation", "savepoint", "--args", "{model: keyed}"])
        assert len(table_of(project, keyed).savepoints()) == 1
        (node,) = [one for name, one in run_dbt(["docs", "generate"]).nodes.items() if name.endswith(".keyed")]
        assert node.metadata.type == "materialized_view"

    def test_it_becomes_an_incremental_model(self, project, keyed):
        run_dbt(["build"])
        set_model_file(project, keyed, INCREMENTAL)
        run_dbt(["run", "--select", "keyed"])
        assert kind_of(project, keyed) == "table"
        project.run_sql(f"insert into {keyed} values (3, 300)")
        assert row_count(project, keyed) == 3

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ("audit=true", "anybody may refresh"),
            ("sql_header='set x = 1'", "without its sql_header"),
            ("hive_style_partitioning=false", "Hive's style"),
        ],
    )
    def test_configs_that_cannot_be_kept_are_refused(self, project, keyed, config, message):
        set_model_file(project, keyed, KEYED.replace("unique_key='id'", f"unique_key='id', {config}"))
        with pytest.raises(DbtConfigError, match=message):
            run_dbt(["parse"])
