"""What models cost, counted: Spark sessions, analyses, names in Spark's catalog, jobs. And that what is spared leaves nothing behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import environment_of
from lakehouse_engine import HoodieTable
from tests.dbt.functional.conftest import SPARK
from tests.dbt.functional.test_increments import MERGE
from tests.dbt.functional.test_lakehouse import Base, model
from tests.support.connect_server import classic_only

NEWS = "select 1 as id, 'a' as name"
NO_NEWS = NEWS + " where 1 = 0"
BATCHES = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, warehouse: str) -> Iterator[Counter[str]]:
    """How often Spark is asked for what costs something."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        asked = getattr(owner, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            counts[name] += 1
            return asked(*arguments, **named)

        monkeypatch.setattr(owner, name, counting)

    frame = type(root(warehouse).range(1))
    for owner, name in ((SparkSession, "newSession"), (SparkSession, "sql"), (frame, "selectExpr"), (frame, "createOrReplaceTempView")):
        count(owner, name)
    return counts


def root(warehouse: str) -> SparkSession:
    return environment_of(LakehouseCredentials.from_dict({"schema": "s", "warehouse": warehouse, "spark_config": SPARK})).root_session()  # type: ignore[attr-defined]


def jobs(warehouse: str) -> int:
    """How many jobs Spark has begun."""
    tracker = root(warehouse).sparkContext._jsc.sc().statusStore()
    found = tracker.jobsList(None)
    return int(max((found.apply(number).jobId() for number in range(found.size())), default=-1)) + 1


@classic_only("jobs and sessions are counted in the JVM of this process")
class TestModelsWithoutNews(Base):
    @pytest.fixture(scope="class")
    def models(self):
        return {f"m{number}.sql": model(MERGE, NEWS, NO_NEWS) for number in range(8)}

    def test_each_is_analysed_once_and_they_share_sessions_and_start_no_job(self, project, warehouse, counted):
        run_dbt(["run"])
        before = jobs(warehouse)
        counted.clear()
        results = run_dbt(["run", "--threads", "4"]).results
        assert [result.adapter_response["_message"] for result in results] == ["UPSERT 0 (no new data)"] * 8
        assert jobs(warehouse) == before
        assert counted["sql"] == 8
        assert counted["newSession"] <= 4
        assert not counted["selectExpr"]
        assert not counted["createOrReplaceTempView"]


@classic_only("jobs are counted in the JVM of this process")
class TestBatchesWithoutRows(Base):
    """Of days that neither the files of what the model reads nor those of its table can have rows of, by their statistics."""

    @pytest.fixture(scope="class")
    def models(self):
        days = "select id, timestamp '2020-01-01 12:00:00Z' + make_dt_interval(id) as at from range(3)"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + days,
            "m.sql": model(BATCHES, "with u as (select * from {{ ref('up') }}) select id + 1 as n, at from u"),
        }

    def test_they_start_no_job_and_change_nothing(self, project, warehouse, counted):
        run_dbt(["run", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-04"])
        stored, commits = self.rows(project), self.table(project).history()
        assert len(stored) == 3
        before = jobs(warehouse)
        counted.clear()
        span = ["--event-time-start", "2020-01-10", "--event-time-end", "2020-01-18"]
        [result] = run_dbt(["run", "--select", "m", *span]).results
        assert jobs(warehouse) == before
        # The model and what it replaces; and which moments the ends of batches are, which a process asks once.
        assert 8 * 2 <= counted["sql"] <= 8 * 2 + 9
        assert len(result.batch_results.successful) == 8
        assert result.adapter_response["_message"] == "UPSERT 0 (no new data)"
        assert self.rows(project) == stored
        assert self.table(project).history() == commits


class TestBatchesWithoutSourceRows(Base):
    """What is stored of such a day goes; and a query may give rows of nothing, which come."""

    @pytest.fixture(scope="class")
    def models(self):
        days = "select id, timestamp '2020-01-01 12:00:00Z' + make_dt_interval(id) as at from range({{ var('days') }})"
        day = "timestamp '{{ model.batch.event_time_start if model.batch else '2020-01-01' }}'"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + days,
            "m.sql": model(BATCHES, "select id, at from {{ ref('up') }}"),
            "counts.sql": model(BATCHES, f"select count(*) as n, {day} as at from {{{{ ref('up') }}}}"),
        }

    def test_stored_rows_go_and_rows_of_nothing_come(self, project):
        for days in (3, 1):
            run_dbt(["run", "--vars", f"days: {days}", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-04"])
            assert self.rows(project, "id") == [(day,) for day in range(days)]
            counts = project.run_sql(f"select n from {project.test_schema}.counts order by at", fetch="all")
            assert [n for (n,) in counts] == [1 if day < days else 0 for day in range(3)]


class TestWhatAModelLeavesInItsSession(Base):
    """The next model on the same thread does not find it."""

    SETTING = "spark.sql.shuffle.partitions"

    @pytest.fixture(scope="class")
    def models(self):
        left = (f"set {self.SETTING} = 77", "create or replace temporary view lefts as select 1 as id", "declare variable left_v = 5")
        hooks = ", ".join(f'"{one}"' for one in left)
        return {
            "a.sql": model(f"materialized='table', pre_hook=[{hooks}]", "select * from lefts"),
            "b.sql": model("materialized='table'", f"-- depends_on: {{{{ ref('a') }}}}\nselect '${{{self.SETTING}}}' as n"),
            "c.sql": "-- depends_on: {{ ref('b') }}\nselect * from lefts",
            "d.sql": "-- depends_on: {{ ref('b') }}\nselect left_v as id",
        }

    NAME = "b"

    def test_settings_views_and_variables_are_gone(self, project):
        results = {result.node.name: str(result.status) for result in run_dbt(["run", "--threads", "1"], expect_pass=False).results}
        assert results == {"a": "success", "b": "success", "c": "error", "d": "error"}
        assert self.rows(project) == [("1",)]


class TestWhatOthersChangeBetweenModels(Base):
    """A session that is used again knows nothing of tables that is not true any more."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"up.sql": model("materialized='table'", "select 1 as id"), "m.sql": model(MERGE, "select * from {{ ref('up') }}")}

    def test_rows_columns_and_tables_are_those_of_now(self, project):
        run_dbt(["run", "--threads", "1"])
        up = self.table(project, "up")
        HoodieTable.open(up.path).insert_overwrite_table(pa.table({"id": pa.array([1, 2], pa.int32())}))
        run_dbt(["run", "--threads", "1", "--select", "m"])
        assert self.rows(project) == [(1,), (2,)]
        project.run_sql(f"drop table {up.path.split('/')[-2]}.up")
        project.run_sql(f"create table {project.test_schema}.up (id int, v string) tblproperties (primaryKey = 'id')")
        project.run_sql(f"insert into {project.test_schema}.up values (3, 'x')")
        run_dbt(["run", "--threads", "1", "--full-refresh", "--select", "m"])
        assert self.rows(project) == [(3, "x")]


class TestAStrategyThatNamesTheRows(Base):
    """A strategy of the user's is SQL, which may name the session view in any way."""

    MODEL = model("materialized='incremental', incremental_strategy='mine', unique_key='id'", "select 1 as id", "select 2 as id")

    @pytest.fixture(scope="class")
    def macros(self):
        text = "{% macro get_incremental_mine_sql(arg_dict) %}insert into {{ arg_dict['target_relation'] }} "
        return {"mine.sql": text + "select t.id + 1 from {{ arg_dict['temp_relation'] }} as t{% endmacro %}"}

    def test_it_reads_them(self, project):
        self.run()
        self.run()
        assert self.rows(project) == [(1,), (3,)]
