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


TEXTS = ["", None, 'a"b', "x\ny", "x\r\ny", " lead", "trail ", "a\\", '\\"', ",", '""', "#c", "null", "NaN", "'", "ä", "\t"]


def literal(value: str | None) -> str:
    """Line ends as escapes: Jinja makes others of them."""
    if value is None:
        return "cast(null as string)"
    return "'" + "".join({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"}.get(sign, sign) for sign in value) + "'"


ROWS = "select * from values " + ", ".join(f"({number}, {literal(text)})" for number, text in enumerate(TEXTS)) + " as t(id, `a text`)"
TYPES = (
    "select cast(1 as tinyint) as t, cast(2.50 as decimal(10,2)) as d, double('Infinity') as inf, double('NaN') as nan, true as b,"
    " date'2024-02-29' as day, timestamp'2024-02-29 01:02:03.123456' as at, timestamp_ntz'2024-02-29 01:02:03.123456' as ntz"
)
NESTED = f"select named_struct('a b', array(map('k', 1))) as s, * from ({TYPES})"


def external(location: str, query: str, **configs: Any) -> str:
    given = "".join(f", {key}={value!r}" for key, value in configs.items())
    return f"{{{{ config(materialized='external', location={location!r}{given}) }}}} {query}"


PARTED = external("out/parted", "select id, concat('0', id) as p, 'v' as v from {{ ref('checked') }}", partition_by=["p"])
EXTERNAL_PYTHON = "def model(dbt, session):\n    dbt.config(materialized='external', location='out/py')\n    return session.range(4)\n"
CHECKED = {
    "models": [
        {
            "name": "checked",
            "config": {"contract": {"enforced": True}},
            "columns": [{"name": "id", "data_type": "bigint", "constraints": [{"type": "not_null"}, {"type": "unique"}]}],
        }
    ]
}


class TestExternal:
    """What is read back is what was written, in each format."""

    @pytest.fixture(scope="class")
    def models(self):
        texts = {f"texts_{form}.sql": external(f"out/texts_{form}", ROWS, format=form) for form in ("csv", "json", "parquet")}
        types = {"types_csv.sql": external("out/types_csv", TYPES, format="csv", options={"sep": ";", "compression": "gzip"})}
        nested = {f"nested_{form}.sql": external(f"out/nested_{form}", NESTED, format=form) for form in ("json", "parquet")}
        return {
            **texts,
            **types,
            **nested,
            "nulls.sql": external("out/nulls", "select if(id = 1, '', null) as n from range(3)", format="csv"),
            "none.sql": external("out/none", "select id, 'x' as p from range(0)", format="csv", partition_by="p"),
            "parted.sql": PARTED,
            "later.sql": "{{ config(materialized='table') }} select p, count(*) as n from {{ ref('parted') }} group by p",
            "checked.sql": external("out/checked", "select {{ var('of', 'id') }} as id from range(2)"),
            "checked.yml": json.dumps(CHECKED),
            "in_python.py": EXTERNAL_PYTHON,
        }

    def rows(self, project: Any, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return [tuple(row) for row in project.run_sql(f"select {columns} from {project.test_schema}.{name}", fetch="all")]

    def test_rows_come_back_as_they_were(self, project):
        run_dbt(["run"])
        for form in ("csv", "json", "parquet"):
            assert sorted(self.rows(project, f"texts_{form}")) == list(enumerate(TEXTS)), form
        for name, query in (("types_csv", TYPES), ("nested_json", NESTED), ("nested_parquet", NESTED)):
            assert self.rows(project, name, "to_json(struct(*)), typeof(struct(*))") == [
                tuple(row) for row in project.run_sql(f"select to_json(struct(*)), typeof(struct(*)) from ({query})", fetch="all")
            ], name
        assert sorted(self.rows(project, "nulls"), key=str) == [("",), (None,), (None,)]
        assert self.rows(project, "none", "count(*), max(typeof(p))") == [(0, None)]
        assert sorted(self.rows(project, "later")) == [("00", 1), ("01", 1)]
        assert self.rows(project, "in_python", "count(*)") == [(4,)]

    def test_a_second_run_takes_the_place_of_the_first_and_leaves_nothing_beside(self, project):
        run_dbt(["run", "--select", "parted"])
        out = Path(project.project_root, "out")
        before = {path.name for path in (out / "parted").rglob("part-*")}
        (result,) = run_dbt(["run", "--select", "parted"]).results
        assert result.message == f"parquet in {out}/parted"
        after = {path.name for path in (out / "parted").rglob("part-*")}
        assert len(list((out / "parted").rglob("part-*"))) == 2
        assert not after & before
        assert list((out / ".lakehouse").iterdir()) == []
        run_dbt(["run", "--select", "parted", "--empty"])
        assert self.rows(project, "parted", "count(*)") == [(0,)]

    def test_rows_against_the_contract_leave_what_was_there(self, project):
        run_dbt(["run", "--select", "checked"])
        for of, message in (("null", "not_null constraint"), ("7", "unique constraint")):
            given = json.dumps({"of": f"cast({of} as bigint)"})
            _, log = run_dbt_and_capture(["run", "--select", "checked", "--vars", given], expect_pass=False)
            assert message in log
        assert sorted(self.rows(project, "checked")) == [(0,), (1,)]

    def test_a_query_that_fails_leaves_what_was_there(self, project):
        run_dbt(["run", "--select", "checked"])
        given = json.dumps({"of": "if(id = 1, raise_error('no'), id)"})
        run_dbt(["run", "--select", "checked", "--vars", given], expect_pass=False)
        assert sorted(self.rows(project, "checked")) == [(0,), (1,)]

    def test_a_folder_of_somebody_else_is_not_replaced(self, project):
        theirs = Path(project.project_root, "out", "checked")
        run_dbt(["run", "--select", "checked"])
        (theirs / "_lakehouse.json").unlink()
        _, log = run_dbt_and_capture(["run", "--select", "checked"], expect_pass=False)
        assert f"{theirs} was written by somebody else" in log
        assert any(theirs.glob("part-*"))

    def test_docs_have_the_columns(self, project):
        run_dbt(["run", "--select", "texts_csv"])
        catalog = run_dbt(["docs", "generate"])
        (entry,) = [found for key, found in catalog.nodes.items() if key.endswith(".texts_csv")]
        assert (entry.metadata.type, [column.name for column in entry.columns.values()]) == ("view", ["id", "a text"])
