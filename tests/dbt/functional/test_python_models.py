"""Python models: the session sees the warehouse, every kind of rows, incremental ones, packages."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

from lakehouse_engine import Lakehouse

SOURCE = "select id, concat('n', id) as name from range(1, 4)"

SESSION = """
def model(dbt, session):
    dbt.config(materialized="table", packages=["pyarrow", "pandas>=2"], meta={"tier": "gold"})
    assert isinstance(session, type(dbt.ref("numbers").sparkSession))
    assert dbt.config.get("materialized") == "table"
    assert dbt.config.get("unique_key", "none") in (None, "none")
    assert not dbt.is_incremental
    schema = dbt.this.schema
    counted = [
        session.sql(f"select * from {schema}.numbers").count(),
        session.table(f"{schema}.numbers").count(),
        session.read.table(f"`{schema}`.`numbers`").count(),
        spark.table(f"spark_catalog.{schema}.seen").count(),
        dbt.ref("seen").count(),
        session.sql("select * from {rows} where name <> {name}", rows=dbt.ref("numbers"), name="n1").count(),
        session.sql(f"select * from {schema}.numbers where id = :id", args={"id": 2}).count(),
    ]
    assert session.catalog.tableExists(f"{schema}.numbers")
    assert not session.catalog.tableExists(f"{schema}.nowhere")
    # What the model makes in the session is found beside the warehouse's tables.
    session.createDataFrame([(1,)], "id int").createOrReplaceTempView("mine")
    counted.append(session.sql(f"select * from {schema}.numbers join mine using (id)").count())
    counted.append(session.table("mine").count())
    session.conf.set("spark.sql.shuffle.partitions", "1")
    assert session.conf.get("spark.sql.shuffle.partitions") == "1"
    return session.createDataFrame(list(enumerate(counted)), "position int, counted long")
"""

INCREMENTAL = """
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", table_type="{kind}")
    rows = dbt.ref("numbers")
    if dbt.is_incremental:
        newest = session.sql(f"select max(id) from {{dbt.this}}").collect()[0][0]
        assert session.table(f"{{dbt.this}}").count() == newest
        assert session.table(str(dbt.this)).filter("name = 'n1'").count() == 1
        rows = session.sql("select cast({{newest}} + 1 as bigint) as id, 'later' as name", newest=newest)
    return rows
"""

READER = """
import pyarrow as pa

def model(dbt, session):
    dbt.config(materialized="table")
    table = dbt.ref("numbers").toArrow().append_column("kind", pa.array(["a", "b", "a"]).dictionary_encode())
    return table.to_reader()
"""

PANDAS = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("numbers").toPandas().assign(twice=lambda rows: rows.id * 2)
"""

class TestSession:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "numbers.sql": "{{ config(materialized='table') }} " + SOURCE,
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('numbers') }}",
            "session.py": SESSION,
            "reader.py": READER,
            "frame.py": PANDAS,
            "cow.py": INCREMENTAL.format(kind="cow"),
            "mor.py": INCREMENTAL.format(kind="mor"),
        }

    def test_a_model_sees_the_warehouse_and_its_own_table(self, project):
        assert len(run_dbt(["run"])) == 7
        lake = Lakehouse(project.adapter.config.credentials.warehouse)
        read = lambda name: lake.table(f"{project.test_schema}.{name}").to_arrow().to_pydict()  # noqa: E731
        found = read("session")
        assert dict(zip(found["position"], found["counted"], strict=True)) == dict(enumerate([3, 3, 3, 3, 3, 2, 1, 1, 1]))
        assert sorted(read("reader")["kind"]) == ["a", "a", "b"]
        assert sorted(read("frame")["twice"]) == [2, 4, 6]
        run_dbt(["run", "--select", "cow", "mor"])
        run_dbt(["run", "--select", "cow", "mor"])
        for name in ("cow", "mor"):
            assert sorted(read(name)["id"]) == [1, 2, 3, 4, 5]


NO_NEWS = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    rows = pd.DataFrame({"id": [1, 2], "kind": ["a", None]})
    return rows[rows.id > 9] if dbt.is_incremental else rows
"""


class TestPandasWithoutRows:
    @pytest.fixture(scope="class")
    def models(self):
        return {"news.py": NO_NEWS}

    def test_a_run_without_news_changes_nothing(self, project):
        for _ in range(2):
            run_dbt(["run"])
        table = Lakehouse(project.adapter.config.credentials.warehouse).table(f"{project.test_schema}.news")
        assert sorted(table.to_arrow().to_pylist(), key=str) == [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}]


OTHER_SESSION = """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("numbers").sparkSession.newSession().sql("select 1 as id, array(named_struct('a', 1), null) as l")
"""


class TestRowsOfAnotherSession:
    @pytest.fixture(scope="class")
    def models(self):
        return {"numbers.sql": SOURCE, "other.py": OTHER_SESSION}

    def test_a_null_among_structs_of_literals_is_taken_over(self, project, connect_url):
        if connect_url is not None:
            pytest.skip("a session of Spark Connect makes no others")
        run_dbt(["run"])
        table = Lakehouse(project.adapter.config.credentials.warehouse).table(f"{project.test_schema}.other")
        assert table.to_arrow().to_pylist() == [{"id": 1, "l": [{"a": 1}, None]}]


class TestRefused:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "numbers.sql": "{{ config(materialized='table') }} " + SOURCE,
            "number.py": "def model(dbt, session):\n    dbt.config(materialized='table')\n    return 42\n",
            "nothing.py": "def model(dbt, session):\n    dbt.config(materialized='table')\n    return None\n",
            "packages.py": "def model(dbt, session):\n"
            "    dbt.config(materialized='table', packages=['no-such-package-of-anybody', 'pyarrow<1'])\n"
            "    return dbt.ref('numbers')\n",
            "wrong.py": "def model(dbt, session):\n    dbt.config(materialized='table')\n    assert dbt.ref('numbers').count() == 4\n"
            "    return dbt.ref('numbers')\n",
            "unknown.py": "def model(dbt, session):\n    dbt.config(materialized='table')\n    return session.table('no.such')\n",
        }

    def test_errors_name_the_model_and_what_to_do(self, project):
        results = run_dbt(["run"], expect_pass=False)
        said = {result.node.name: result.message for result in results if str(result.status) == "error"}
        assert set(said) == {"number", "nothing", "packages", "unknown", "wrong"}
        assert "model.test.number: a Python model returns" in said["number"]
        assert "returned nothing" in said["nothing"]
        assert "'no-such-package-of-anybody' is not installed" in said["packages"]
        assert "'pyarrow' is there as" in said["packages"]
        assert "model.test.wrong: AssertionError in line 3" in said["wrong"]
        assert "TABLE_OR_VIEW_NOT_FOUND" in said["unknown"]
        lake = Lakehouse(project.adapter.config.credentials.warehouse)
        assert lake.tables(project.test_schema) == [f"{project.test_schema}.numbers"]
