"""Models that read their own table while others write to it: nothing that came in between is lost, ignored, or there twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt

import lakehouse_engine.table as facade
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.writing.writes import TableWriter
from lakehouse_engine import HoodieTable
from tests.dbt.functional.test_increments import MERGE, Changing
from tests.dbt.functional.test_lakehouse import values

RETRIES = "hoodie.write.num.retries.on.conflict.failures"


class Between(Changing):
    """A commit of somebody else between what the model reads and what it writes."""

    @pytest.fixture
    def between(self, monkeypatch: pytest.MonkeyPatch, project: Any) -> Callable[..., list[int]]:
        def plan(rows: dict[str, list[Any]], times: int = 1, put: str = "upsert") -> list[int]:
            write, done = facade.execute_write, []

            def interrupted(*arguments: Any) -> Any:
                if len(done) < times:
                    done.append(len(done))
                    monkeypatch.setattr(facade, "execute_write", write)
                    getattr(HoodieTable.open(self.table(project).path), put)(pa.table(rows))
                    monkeypatch.setattr(facade, "execute_write", interrupted)
                return write(*arguments)

            monkeypatch.setattr(facade, "execute_write", interrupted)
            return done

        return plan


class TestModelsThatReadThemselves(Between):
    INCREMENT = "select id, n + 1 as n from {{ this }}"

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_merge_computes_the_model_again_from_what_came_in_between(self, project, between, kind):
        config = f"{MERGE}, table_type='{kind}'"
        self.first(project, config, values("id, n", "1, 10", "2, 20"))
        self.write(project, config, "{% if is_incremental() %}" + self.INCREMENT + "{% else %}select 1{% endif %}")
        done = between({"id": pa.array([1, 3], pa.int32()), "n": pa.array([100, 30], pa.int32())})
        self.run()
        assert done
        assert self.rows(project) == [(1, 101), (2, 21), (3, 31)]

    def test_a_table_model_of_itself_keeps_what_was_appended(self, project, between):
        self.first(project, "materialized='table', unique_key='id'", values("id, n", "1, 10"))
        self.write(project, "materialized='table', unique_key='id'", self.INCREMENT)
        between({"id": pa.array([3], pa.int32()), "n": pa.array([30], pa.int32())})
        self.run()
        assert self.rows(project) == [(1, 11), (3, 31)]

    def test_after_its_retries_the_model_fails_and_says_who_was_faster(self, project, between):
        config = MERGE + ", hoodie={'" + RETRIES + "': '1'}"
        self.first(project, config, values("id, n", "1, 10"))
        self.write(project, config, self.INCREMENT)
        done = between({"id": pa.array([1], pa.int32()), "n": pa.array([100], pa.int32())}, times=9)
        assert "UPSERT by process" in self.fails()
        assert len(done) == 2
        assert self.rows(project) == [(1, 100)]


class TestAPythonModel(Between):
    SCRIPT = """
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    if dbt.is_incremental:
        return dbt.source("own", "m").selectExpr("id", "n + 1 as n")
    return session.createDataFrame([(1, 10)], "id int, n int")
"""

    SOURCES = 'sources:\n  - name: own\n    schema: "{{ target.schema }}"\n    tables: [{name: m}]\n'

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.py": self.SCRIPT, "sources.yml": self.SOURCES}

    def test_its_script_runs_again(self, project, between):
        self.run()
        between({"id": pa.array([1, 3], pa.int32()), "n": pa.array([100, 30], pa.int32())})
        self.run()
        assert self.rows(project) == [(1, 101), (3, 31)]


class TestReplacingRows(Between):
    """Strategies that look up which stored rows they replace."""

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    @pytest.mark.parametrize(
        "config",
        [
            "incremental_strategy='delete+insert', unique_key='id'",
            "incremental_strategy='replace_where', unique_key='id', incremental_predicates=['id >= 2']",
        ],
        ids=["delete+insert", "replace_where"],
    )
    def test_each_id_is_there_once_although_another_writer_put_it_there_first(self, project, between, kind, config):
        config = f"materialized='incremental', table_type='{kind}', {config}"
        self.first(project, config, values("id, n", "1, 10", "2, 20"))
        self.write(project, config, values("id, n", "2, 21", "3, 31"))
        done = between({"id": pa.array([2, 3], pa.int32()), "n": pa.array([-1, -1], pa.int32())}, put="insert")
        self.run()
        assert done
        assert self.rows(project) == [(1, 10), (2, 21), (3, 31)]

    def test_the_query_of_a_model_that_does_not_read_itself_runs_once(self, project, between):
        config = "materialized='incremental', incremental_strategy='delete+insert', unique_key='id'"
        self.first(project, config, "select 2 as id, 'first' as token")
        self.write(project, config, "select 2 as id, uuid() as token")
        asked: list[str] = []
        computed = project.adapter.__class__.create_session_view

        def counted(adapter, relation, sql):
            asked.append(sql)
            return computed(adapter, relation, sql)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(project.adapter.__class__, "create_session_view", counted)
            done = between({"id": pa.array([2], pa.int32()), "token": ["theirs"]}, times=3, put="insert")
            self.run()
        assert len(done) == 3
        assert len(asked) == 1
        assert len(self.rows(project)) == 1


class TestSnapshotsAndColumns(Between):
    def test_sync_all_columns_keeps_rows_that_came_while_the_table_was_written_anew(self, project, between):
        config = f"{MERGE}, on_schema_change='sync_all_columns'"
        self.first(project, config, values("id, a, b", "1, 5, 'gone'"))
        self.write(project, config, values("id, a", "2, 6"))
        done = between({"id": pa.array([3], pa.int32()), "a": pa.array([7], pa.int32()), "b": ["gone"]})
        self.run()
        assert done
        assert self.rows(project) == [(1, 5), (2, 6), (3, 7)]


class TestATableThatIsBuiltAnew(Changing):
    def test_a_savepoint_that_was_taken_while_it_was_filled_keeps_the_old_one(self, project, monkeypatch):
        self.first(project, MERGE, values("id, n", "1, 10"))
        path, write = self.table(project).path, facade.execute_write

        def interrupted(*arguments: Any) -> Any:
            monkeypatch.setattr(facade, "execute_write", write)
            HoodieTable.open(path).savepoint(name="mine")
            return write(*arguments)

        monkeypatch.setattr(facade, "execute_write", interrupted)
        self.write(project, MERGE.replace("id", "n"), values("id, n", "2, 20"))
        result = run_dbt(["run", "--full-refresh"], expect_pass=False).results[0]
        assert "its savepoints would be lost: mine" in result.message
        assert self.rows(project) == [(1, 10)]
        self.table(project).delete_savepoint("mine")
        self.run("--full-refresh")
        assert self.rows(project) == [(2, 20)]
        assert self.table(project).config.record_key_fields == ("n",)
        assert self.table(project).config.name == "m"


class TestTwoProcesses(Changing):
    """Real ones, of one project."""

    def test_two_increments_at_once_count_twice(self, project):
        self.first(project, MERGE, values("id, n", "1, 10"))
        slow = "select id, n + 1 as n from {{ this }}"
        self.write(project, MERGE, slow)
        environment = {**os.environ, "DBT_PROFILES_DIR": str(project.profiles_dir)}
        running = [self.start(project, environment, number) for number in range(2)]
        for process in running:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output
        assert self.rows(project) == [(1, 12)]

    def start(self, project: Any, environment: dict[str, str], number: int) -> subprocess.Popen[str]:
        target = str(Path(project.project_root) / f"target{number}")
        command = [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "run", "--target-path", target]
        return subprocess.Popen(
            command, cwd=project.project_root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )



class TestTenThreads:
    """Ten models at once, each of which appends to one table and counts in it."""

    MODEL = """
{{{{ config(
    materialized='table',
    post_hook=[
        "insert into {{{{ target.schema }}}}.log select {number} as id, {number} as n",
        "update {{{{ target.schema }}}}.log set n = n + 1 where id = 0",
    ]
) }}}}
-- depends_on: {{{{ ref('start') }}}}
select {number} as id
"""
    START = """
{{ config(
    materialized='table',
    post_hook=[
        "create table if not exists {{ target.schema }}.log (id int, n int) tblproperties (primaryKey='id')",
        "insert into {{ target.schema }}.log values (0, 0)",
    ]
) }}
select 0 as id
"""

    @pytest.fixture(scope="class")
    def models(self):
        return {"start.sql": self.START, **{f"m{number}.sql": self.MODEL.format(number=number) for number in range(1, 11)}}

    def test_all_of_them_are_there_and_each_is_counted_once(self, project):
        assert len(run_dbt(["run", "--threads", "10"])) == 11
        rows = project.run_sql(f"select id, n from {project.test_schema}.log order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(0, 10), *((number, number) for number in range(1, 11))]


KILLED = """
import os, sys
import pyarrow as pa
from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from lakehouse_engine.table import HoodieTable
HoodieTable.bulk_insert = lambda *_, **__: os._exit(9)
Warehouse(sys.argv[1]).create_filled(sys.argv[2], "m", pa.table({"id": [1]}), TableShape((), (), (), True), {}, {}, may_go=lambda: None)
"""
"""Dies while it fills the table `m` anew."""


class TestTablesThatAreBuiltAnew(Between):
    """A table of another key is filled where nobody else comes by it, and takes the place of the stored one in one step."""

    FIRST, LATER = "materialized='table'", "materialized='table', unique_key='id'"

    @pytest.fixture(autouse=True)
    def _on_disk(self, project):
        if "://" in project.adapter.config.credentials.warehouse:
            pytest.skip("tables cannot be moved")

    def house(self, project: Any) -> Warehouse:
        return Warehouse(project.adapter.config.credentials.warehouse)

    def left(self, project: Any) -> list[str]:
        """What is there of tables that are being filled."""
        root = Path(project.adapter.config.credentials.warehouse)
        own = [one for one in (root / project.test_schema).iterdir() if one.name != "m" and not one.name.startswith(".")]
        return [one.name for one in (*(root / project.test_schema).glob(".staged/*"), *own)]

    def test_two_at_once_do_not_take_each_others_rows(self, project, monkeypatch):
        self.first(project, self.FIRST, values("id, v", "1, 'old'"))
        self.write(project, self.LATER, values("id, v", "1, 'ours'"))
        write, seen = facade.execute_write, []

        def interrupted(*arguments: Any) -> Any:
            monkeypatch.setattr(facade, "execute_write", write)
            house = self.house(project)
            config = ModelConfig.from_config("m", {"unique_key": "v", "materialized": "table"}, {})
            TableWriter(house, project.test_schema, "m", config).replace(pa.table({"id": [2], "v": ["theirs"]}), existing="table")
            seen.append((house.relations(project.test_schema), house.table(project.test_schema, "m").to_arrow().to_pylist()))
            return write(*arguments)

        monkeypatch.setattr(facade, "execute_write", interrupted)
        self.run()
        assert seen == [([("m", "table")], [{"id": 2, "v": "theirs"}])]
        assert self.rows(project) == [(1, "ours")]
        assert self.table(project).config.record_key_fields == ("id",)
        assert self.left(project) == []

    def test_nothing_is_left_of_one_that_fails_or_whose_process_was_killed(self, project):
        self.first(project, self.FIRST, values("id, v", "1, 'old'"))
        root = project.adapter.config.credentials.warehouse
        subprocess.run([sys.executable, "-c", KILLED, root, project.test_schema], check=False, timeout=120)
        assert self.left(project)
        self.write(project, self.LATER, "select 1 as id, cast(raise_error('no rows today') as int) as v")
        assert "no rows today" in self.fails()
        assert self.rows(project) == [(1, "old")]
        assert self.left(project) == []

    def test_a_view_becomes_a_table(self, project):
        self.first(project, "materialized='view'", values("id, v", "1, 'old'"))
        self.write(project, self.LATER, "select id, 'new' as v from {{ this }}")
        self.run()
        assert self.rows(project) == [(1, "new")]
        assert self.left(project) == []
