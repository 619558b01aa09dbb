"""Files in the place of tables: sources that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

SOURCES: dict[str, Any] = {
    "sources": [
        {
            "name": "raw",
            "meta": {"lakehouse": {"format": "csv", "path": "data/{name}*.csv", "options": {"header": True, "sep": ";"}}},
            "tables": [
                {
                    "name": "orders",
                    "description": "as they come",
                    "config": {"meta": {"lakehouse": {"schema": "id bigint, name string, at timestamp", "options": {"multiLine": True}}}},
                    "columns": [{"name": "id", "data_tests": ["not_null", "unique"]}],
                    "loaded_at_field": "at",
                    "freshness": {"warn_after": {"count": 1, "period": "day"}},
                },
                {"name": "table", "meta": {"lakehouse": None}},
            ],
        },
        {
            "name": "lines",
            "tables": [
                {"name": "clicks", "meta": {"lakehouse": {"format": "json", "path": "{{ var('clicks') }}"}}},
                {
                    "name": "of_text",
                    "config": {
                        "meta": {"lakehouse": {"format": "text", "path": "data/it's.txt"}},
                        "freshness": {"warn_after": {"count": 1, "period": "day"}},
                    },
                }
            ],
        },
    ]
}
UNIT_TEST = {
    "name": "mocked",
    "model": "from_csv",
    "given": [{"input": "source('raw', 'orders')", "rows": [{"id": 7, "name": "x"}]}],
    "expect": {"rows": [{"id": 7, "name": "x"}]},
}
PYTHON = """
def model(dbt, session):
    dbt.config(materialized='table')
    return dbt.source('raw', 'orders').select('id')
"""
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['name']) }}
select id, name from {{ source('raw', 'orders') }}
{% endsnapshot %}
"""


class TestSourcesThatAreFiles:
    """Whatever reads a source reads its files."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"vars": {"clicks": "data/clicks"}}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "sources.yml": json.dumps({**SOURCES, "unit_tests": [UNIT_TEST]}),
            "from_csv.sql": "{{ config(materialized='table') }} select o.id, o.name from {{ source('raw', 'orders') }} as o",
            "from_json.sql": "select count(*) as n, max(page) as page from {{ source('lines', 'clicks') }}",
            "from_text.sql": "{{ config(materialized='table') }} select value from {{ source('lines', 'of_text') }}",
            "in_python.py": PYTHON,
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def data(self, project) -> Path:
        folder = Path(project.project_root, "data")
        (folder / "clicks").mkdir(parents=True, exist_ok=True)
        (folder / "orders_1.csv").write_text('id;name;at\n1;a;2020-01-01 00:00:00\n2;"b\nc";2020-01-02 00:00:00\n')
        (folder / "orders_2.csv").write_text("id;name;at\n3;d;2020-01-03 00:00:00\n")
        (folder / "clicks" / "one.json").write_text('{"page": "p"}\n{"page": "q"}\n')
        (folder / "it's.txt").write_text("a line\n")
        return folder

    def test_models_tests_snapshots_and_unit_tests(self, project, data):
        run_dbt(["build", "--exclude", "source:raw.table"])
        rows = project.run_sql(f"select id, name from {project.test_schema}.from_csv order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "a"), (2, "b\nc"), (3, "d")]
        assert tuple(project.run_sql(f"select n, page from {project.test_schema}.from_json", fetch="one")) == (2, "q")
        assert tuple(project.run_sql(f"select value from {project.test_schema}.from_text", fetch="one")) == ("a line",)
        for name in ("in_python", "kept"):
            assert project.run_sql(f"select count(*) from {project.test_schema}.{name}", fetch="one")[0] == 3

    def test_show_empty_and_columns(self, project, data):
        shown = run_dbt(["show", "--inline", "select count(*) as n from {{ source('raw', 'orders') }}", "--output", "json"])
        assert shown.results[0].agate_table.rows[0]["n"] == 3
        run_dbt(["run", "--select", "from_csv", "--empty"])
        assert project.run_sql(f"select count(*) from {project.test_schema}.from_csv", fetch="one")[0] == 0

    def test_freshness_of_a_column_and_of_files(self, project, data):
        results = run_dbt(["source", "freshness"], expect_pass=True).results
        found = {result.node.name: result for result in results}
        assert str(found["orders"].status) == "warn"
        assert found["orders"].max_loaded_at.isoformat().startswith("2020-01-03")
        assert str(found["of_text"].status) == "pass"
        written = (data / "it's.txt").stat().st_mtime
        assert abs(found["of_text"].max_loaded_at.timestamp() - written) < 1

    def test_docs_show_the_columns(self, project, data):
        run_dbt(["run", "--select", "from_csv"])
        catalog = run_dbt(["docs", "generate"])
        (orders,) = [entry for key, entry in catalog.sources.items() if key.endswith("raw.orders")]
        assert {name: column.type for name, column in orders.columns.items()} == {"id": "bigint", "name": "string", "at": "timestamp"}

    def test_files_that_are_not_there_are_named_and_nothing_is_built(self, project, data):
        before = project.run_sql(f"select count(*) from {project.test_schema}.from_text", fetch="one")[0]
        (data / "it's.txt").rename(data / "away.txt")
        try:
            _, log = run_dbt_and_capture(["run", "--select", "from_text"], expect_pass=False)
        finally:
            (data / "away.txt").rename(data / "it's.txt")
        assert f"there are no text files {data}/it's.txt" in log
        assert project.run_sql(f"select count(*) from {project.test_schema}.from_text", fetch="one")[0] == before
