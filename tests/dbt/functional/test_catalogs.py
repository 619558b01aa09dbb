"""Production as an attached warehouse: `--defer`, `clone`, sources, SQL and packages' questions, and that nothing there is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from lakehouse_engine import Lakehouse

ORDERS = {"name": "orders", "config": {"freshness": {"warn_after": {"count": 1, "period": "day"}}}}
SOURCES = {"sources": [{"name": "raw", "database": "prod", "schema": "raw", "tables": [ORDERS]}]}
MATH = "{{ config(materialized='table') }} select a.id, b.n from {{ ref('stage') }} a join {{ ref('counted') }} b on a.id = b.id"
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['v']) }}
select * from {{ ref('stage') }}
{% endsnapshot %}
"""
ASKED = """
{% macro asked(schema) %}
  {% set there = adapter.get_relation(database='prod', schema=schema, identifier='stage') %}
  {% set columns = adapter.get_columns_in_relation(there) | map(attribute='name') | join(',') %}
  {{ log('ASKED ' ~ there ~ ' ' ~ there.type ~ ' ' ~ columns, info=True) }}
  {% do adapter.drop_relation(there) %}
{% endmacro %}
"""


class TestProductionIsAttached:
    """Two profiles: production says how it is called, CI where that is."""

    @pytest.fixture(scope="class")
    def production(self, warehouse: str) -> str:
        return f"{warehouse}_prod"

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], production: str, unique_schema: str) -> dict[str, Any]:
        ci = {**dbt_profile_target, "schema": f"{unique_schema}_ci", "catalogs": {"prod": production}}
        prod = {**dbt_profile_target, "schema": unique_schema, "warehouse": production, "catalog": "prod"}
        return {"test": {"outputs": {"default": ci, "production": prod}, "target": "default"}}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sources.yml": json.dumps(SOURCES),
            "stage.sql": "{{ config(materialized='table') }} select * from {{ source('raw', 'orders') }}",
            "counted.sql": "select id, count(*) as n from {{ ref('stage') }} group by id",
            "late.sql": MATH,
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def macros(self):
        return {"asked.sql": ASKED}

    @pytest.fixture(scope="class")
    def state(self, project, production: str) -> Path:
        """What production's run left, and the rows that it has."""
        lake = Lakehouse(production, spark=None)
        lake.create_schema("raw")
        table = lake.create_table("raw.orders", schema=pa.schema([("id", pa.int64()), ("v", pa.string())]), record_key=["id"])
        table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
        run_dbt(["build", "--target", "production"])
        manifest = Path(project.project_root, "target", "manifest.json").read_text()
        folder = Path(project.project_root, "state")
        folder.mkdir()
        write_file(manifest, str(folder), "manifest.json")
        nodes = json.loads(manifest)["nodes"].values()
        assert {node["database"] for node in nodes} == {"prod"}
        return folder

    def rows(self, project: Any, text: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in project.run_sql(text, fetch="all"))

    def ours(self, project: Any) -> list[str]:
        lake = Lakehouse(project.adapter.config.credentials.warehouse)
        schema = f"{project.test_schema}_ci" if not project.test_schema.endswith("_ci") else project.test_schema
        return [] if lake.catalog.find_schema(schema) is None else [name.split(".")[1] for name in lake.tables(schema)]

    def test_defer_reads_what_ci_has_not_built(self, project, state, production, unique_schema):
        before = sorted(str(one) for one in Path(production).rglob("*")) if "://" not in production else []
        run_dbt(["build", "--select", "late", "--defer", "--state", "state"])
        assert self.rows(project, f"select id, n from {unique_schema}_ci.late") == [(1, 1), (2, 1)]
        assert self.ours(project) == ["late"]
        inline = "select count(*) as n from {{ ref('counted') }}"
        shown = run_dbt(["show", "--inline", inline, "--defer", "--state", "state", "--output", "json"])
        assert shown.results[0].agate_table.rows[0]["n"] == 2
        assert self.rows(project, f"select v from prod.{unique_schema}.stage") == [("a",), ("b",)]
        if before:
            assert sorted(str(one) for one in Path(production).rglob("*")) == before

    def test_clone_makes_tables_here(self, project, state, unique_schema):
        results = run_dbt(["clone", "--state", "state", "--full-refresh"]).results
        assert {str(result.status) for result in results} == {"success"}
        assert self.ours(project) == ["kept", "late", "stage"]
        assert self.rows(project, f"select id, n from {unique_schema}_ci.counted") == [(1, 1), (2, 1)]
        run_dbt(["run", "--select", "stage"])
        assert self.rows(project, f"select count(*) from {unique_schema}_ci.kept") == [(2,)]

    def test_freshness_docs_and_questions(self, project, state, unique_schema):
        (result,) = run_dbt(["source", "freshness"]).results
        assert str(result.status) == "pass"
        run_dbt(["run", "--select", "stage"])
        catalog = run_dbt(["docs", "generate"])
        assert [list(entry.columns) for entry in catalog.sources.values()] == [["id", "v"]]
        assert any(key.endswith(".stage") for key in catalog.nodes)
        _, log = run_dbt_and_capture(
            ["run-operation", "asked", "--args", json.dumps({"schema": unique_schema})], expect_pass=False
        )
        assert f"ASKED prod.{unique_schema}.stage table id,v" in log
        assert "prod is attached to be read only: nothing was changed" in log

    def test_docs_of_production_find_what_has_its_name(self, project, state):
        for selected in ([], ["--select", "stage"]):
            catalog = run_dbt(["docs", "generate", "--target", "production", *selected])
            assert any(key.endswith(".stage") for key in catalog.nodes), selected
        assert any(key.endswith(".orders") for key in run_dbt(["docs", "generate", "--target", "production"]).sources)

    def test_nothing_is_built_in_production(self, project, state):
        text = "{{ config(materialized='table', database='prod') }} select 1 as id"
        write_file(text, project.project_root, "models", "there.sql")
        try:
            _, log = run_dbt_and_capture(["run", "--select", "there"], expect_pass=False)
        except Exception as error:  # noqa: BLE001 - dbt raises what it finds while it parses
            log = str(error)
        finally:
            Path(project.project_root, "models", "there.sql").unlink()
        assert "the catalog 'prod' is attached to be read only" in log
