"""What this adapter promises beyond dbt's own suite: commits, history, responses, strategies, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import environment_of
from lakehouse_engine.table import HoodieTable
from tests.dbt.functional.conftest import SPARK
from tests.support.connect_server import classic_only

RESPONSE = {
    "instant",
    "previous_instant",
    "operation",
    "table_type",
    "rows_affected",
    "inserts",
    "updates",
    "deletes",
    "files_created",
    "files_updated",
    "log_files",
    "bytes_written",
}


def model(config: str, rows: str, later: str | None = None) -> str:
    """A model whose first run has `rows` and whose later runs have `later`."""
    body = rows if later is None else "{% if is_incremental() %}" + later + "{% else %}" + rows + "{% endif %}"
    return "{{ config(" + config + ") }} " + body


def values(names: str, *rows: str) -> str:
    return f"select * from values {', '.join(f'({row})' for row in rows)} as t({names})"


class Base:
    NAME = "m"
    MODEL: str

    @pytest.fixture(scope="class")
    def models(self):
        return {f"{self.NAME}.sql": self.MODEL}

    def table(self, project: Any, name: str | None = None) -> HoodieTable:
        return HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name or self.NAME}")

    def rows(self, project: Any, columns: str = "*") -> list[tuple[Any, ...]]:
        return sorted(project.run_sql(f"select {columns} from {project.test_schema}.{self.NAME}", fetch="all"), key=str)

    def run(self, *arguments: str) -> dict[str, Any]:
        return run_dbt(["run", *arguments]).results[0].adapter_response


class TestMergeByKeyAndOrdering(Base):
    MODEL = model(
        "materialized='incremental', unique_key='id', ordering_fields='ts', delete_condition='DBT_INTERNAL_SOURCE.gone'",
        values("id, ts, v, gone", "1, 10, 'a', false", "2, 10, 'b', false", "2, 11, 'c', false", "3, 10, 'd', false"),
        values("id, ts, v, gone", "1, 9, 'late', false", "2, 12, 'new', false", "3, 12, 'x', true", "4, 1, 'e', false"),
    )

    def test_event_time_deletes_and_response(self, project):
        first = self.run()
        assert self.rows(project, "id, v") == [(1, "a"), (2, "c"), (3, "d")]
        second = self.run()
        assert self.rows(project, "id, v") == [(1, "a"), (2, "new"), (4, "e")]
        assert set(second) >= RESPONSE
        assert second["previous_instant"] == first["instant"]
        assert (second["operation"], second["inserts"], second["deletes"]) == ("upsert", 1, 1)


class TestDeletionsOfAFirstBuild(Base):
    """A build from nothing gives the table that the same rows give batch by batch."""

    ROWS = values("id, ts, v, gone", "1, 1, 'a', false", "1, 2, 'a', true", "2, 1, 'b', true", "2, 2, 'b', false", "3, 1, 'c', true")
    MODEL = model("materialized='incremental', unique_key='id', ordering_fields='ts', delete_condition='DBT_INTERNAL_SOURCE.gone'", ROWS)

    def test_deleted_keys_do_not_come_back_by_a_full_refresh(self, project):
        self.run()
        assert self.rows(project, "id, ts") == [(2, 2)]
        self.run()
        assert self.rows(project, "id, ts") == [(2, 2)]
        self.run("--full-refresh")
        assert self.rows(project, "id, ts") == [(2, 2)]


class TestBuckets(Base):
    """Buckets are for the life of a table: another index takes a full refresh, and gets it."""

    MODEL = model(
        "materialized='incremental', unique_key='id', index=var('index', 'auto'), hoodie={'hoodie.bucket.index.num.buckets': var('n', 4)}",
        values("id, v", "1, 'a'", "2, 'b'"),
        values("id, v", "2, 'c'"),
    )

    def test_another_index_or_number_of_buckets_is_refused_until_the_table_is_built_anew(self, project):
        self.run()
        for given in ("{index: bucket}", "{index: bucket, n: 2}", "{index: bloom}"):
            _, output = run_dbt_and_capture(["run", "--vars", given], expect_pass=False)
            assert "index (or the number of its buckets, or their field) is not that of the table" in output
            assert "--full-refresh" in output
            assert self.run("--vars", given, "--full-refresh")["operation"] in ("bulk_insert", "insert_overwrite_table")
            assert self.rows(project) == [(1, "a"), (2, "b")]
            self.run("--vars", given)
            assert self.rows(project) == [(1, "a"), (2, "c")]


class TestAViewInPlaceOfATable(Base):
    MODEL = "{{ config(materialized='table') }} select 1 as id"

    def test_savepoints_keep_the_table_until_they_are_deleted(self, project):
        self.run()
        run_dbt(["run-operation", "savepoint", "--args", "{model: m, name: keep_me}"])
        write_file(self.MODEL.replace("'table'", "'view'"), project.project_root, "models", "m.sql")
        _, output = run_dbt_and_capture(["run"], expect_pass=False)
        assert "its savepoints would be lost with it: keep_me" in output
        assert self.table(project).to_arrow(as_of="keep_me").to_pylist() == [{"id": 1}]
        for operation in ("history", "savepoints", "table_info", "verify", "writers"):
            given = f"{{relation: {project.test_schema}.m, dry_run: true}}"
            _, output = run_dbt_and_capture(["run-operation", operation, "--args", given])
            assert f"{operation} (dry run: nothing is changed)" in output
        run_dbt(["run-operation", "delete_savepoint", "--args", f"{{relation: {project.test_schema}.m, savepoint: keep_me}}"])
        self.run()
        assert self.rows(project) == [(1,)]


class TestFullRefreshKeepsHistory(Base):
    MODEL = model("materialized='incremental', unique_key='id'", values("id, v", "1, 'a'"), values("id, v", "2, 'b'"))

    def test_one_replace_commit_and_the_old_snapshot_stays_readable(self, project):
        self.run()
        old = self.run()["instant"]
        fresh = self.run("--full-refresh")
        assert fresh["operation"] == "insert_overwrite_table"
        assert self.rows(project) == [(1, "a")]
        table = self.table(project)
        assert sorted(table.to_arrow(as_of=old).to_pylist(), key=str) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
        assert len([entry for entry in table.history() if entry.operation]) == 3

    def test_commits_say_who_wrote_them(self, project):
        state = self.table(project).state
        metadata = state.commit_metadata(state.timeline.completed().writes().last()).extra_metadata
        assert metadata["dbt.node"] == f"model.test.{self.NAME}"
        assert metadata["dbt.invocation_id"]


class TestTableChangesColumnsAndKey(Base):
    MODEL = model("materialized='table'", "select 1 as id, 'a' as v")

    def test_columns_and_key_may_change(self, project):
        self.run()
        write_file(model("materialized='table'", "select 'x' as other"), project.project_root, "models", "m.sql")
        assert self.run()["operation"] == "insert_overwrite_table"
        assert self.rows(project) == [("x",)]
        write_file(model("materialized='table', unique_key='id'", "select 7 as id"), project.project_root, "models", "m.sql")
        self.table(project).savepoint(name="kept")
        refused = run_dbt(["run"], expect_pass=False).results[0].message
        assert "kept" in refused
        assert self.rows(project) == [("x",)]
        self.table(project).delete_savepoint("kept")
        self.run()
        assert self.table(project).config.record_key_fields == ("id",)
        assert self.rows(project) == [(7,)]


class TestInsertOverwritePartitions(Base):
    MODEL = model(
        "materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day'",
        values("id, day", "1, 'mon'", "2, 'tue'"),
        values("id, day", "3, 'tue'"),
    )

    def test_only_partitions_present_are_replaced(self, project):
        self.run()
        assert self.run()["operation"] == "insert_overwrite"
        assert self.rows(project) == [(1, "mon"), (3, "tue")]


class TestReplaceWhere(Base):
    MODEL = model(
        "materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['id >= 2']",
        values("id, v", "1, 'a'", "2, 'b'", "3, 'c'"),
        values("id, v", "3, 'new'"),
    )

    def test_rows_of_the_condition_are_replaced_in_one_commit(self, project):
        self.run()
        self.run()
        assert self.rows(project) == [(1, "a"), (3, "new")]
        assert len([entry for entry in self.table(project).history() if entry.operation]) == 2


class TestReplaceWhereOfOtherRows(Base):
    """A row that the condition does not find again would be there once more after each run; so would one where it is null."""

    MODEL = model(
        "materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['DBT_INTERNAL_DEST.id >= 2']",
        values("id, v", "1, 'a'", "2, 'b'"),
        "select * from values (2, 'new'), (1, 'again'), (null, 'none') as t(id, v)",
    )

    def test_they_are_refused_before_anything_is_written(self, project):
        self.run()
        message = run_dbt(["run"], expect_pass=False).results[0].message
        assert "2 row(s)" in message
        assert "DBT_INTERNAL_DEST.id >= 2" in message
        assert self.rows(project) == [(1, "a"), (2, "b")]


class TestReplaceWhereOfAColumnThatIsLeftOut(Base):
    """It is null in the rows that come."""

    MODEL = model(
        "materialized='incremental', incremental_strategy='replace_where', incremental_predicates=[\"{0}\"], "
        "on_schema_change='append_new_columns'",
        values("id, v", "1, 'a'", "2, 'b'"),
        "select 2 as id",
    )

    @pytest.mark.parametrize(("condition", "kept"), [("v is null or v = 'b'", [(1, "a"), (2, None)]), ("v = 'b'", None)])
    def test_the_condition_is_asked_of_that(self, project, condition, kept):
        text = self.MODEL.replace("{0}", condition)
        write_file(text, project.project_root, "models", "m.sql")
        run_dbt(["run", "--full-refresh"])
        result = run_dbt(["run"], expect_pass=kept is not None).results[0]
        assert kept is not None or "1 row(s)" in result.message
        assert self.rows(project) == (kept or [(1, "a"), (2, "b")])


class TestEmptyFirstRun(Base):
    MODEL = model("materialized='incremental', unique_key='id'", "select 1 as id, 'a' as v where false", "select 1 as id, 'a' as v")

    def test_an_empty_table_has_its_columns_and_takes_rows_later(self, project):
        self.run()
        assert self.table(project).schema.names == ["id", "v"]
        assert self.rows(project) == []
        self.run()
        assert self.rows(project) == [(1, "a")]


class TestDuplicateKeysAreAnErrorWhenAskedFor(Base):
    MODEL = model(
        "materialized='incremental', unique_key='id', on_duplicate_source_keys='error'", values("id", "1"), values("id", "2", "2")
    )

    def test_the_table_is_unchanged(self, project):
        self.run()
        result = run_dbt(["run"], expect_pass=False).results[0]
        assert "2" in result.message
        assert self.rows(project) == [(1,)]


class TestChangedKeyNeedsFullRefresh(Base):
    MODEL = model("materialized='incremental', unique_key='id'", "select 1 as id, 2 as other")

    def test_an_increment_with_another_key_is_refused(self, project):
        self.run()
        write_file(
            model("materialized='incremental', unique_key='other'", "select 1 as id, 2 as other"), project.project_root, "models", "m.sql"
        )
        result = run_dbt(["run"], expect_pass=False).results[0]
        assert "--full-refresh" in result.message
        self.run("--full-refresh")
        assert self.table(project).config.record_key_fields == ("other",)


class TestStrategyOfTheProject(Base):
    MODEL = model("materialized='incremental', incremental_strategy='insert_only'", values("id", "1"), values("id", "1", "2"))

    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "insert_only.sql": """
{% macro get_incremental_insert_only_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }}
  select * from {{ arg_dict['temp_relation'] }} where id not in (select id from {{ arg_dict['target_relation'] }})
{% endmacro %}
"""
        }

    def test_its_sql_is_run(self, project):
        self.run()
        self.run()
        assert self.rows(project) == [(1,), (2,)]


class TestStrategyOfTheProjectThatMerges(Base):
    """`unique_key` is the record key, which MERGE needs."""

    MODEL = model("materialized='incremental', incremental_strategy='mine', unique_key='id'", values("id, a", "1, 1"))

    @pytest.fixture(scope="class")
    def macros(self):
        text = """
merge into {{ arg_dict['target_relation'] }} as t using (select id, a + 1 as a from {{ arg_dict['temp_relation'] }}) as s on t.id = s.id
when matched then update set * when not matched then insert *
"""
        return {"mine.sql": "{% macro get_incremental_mine_sql(arg_dict) %}" + text + "{% endmacro %}"}

    def test_it_updates_rows_by_their_key(self, project):
        self.run()
        self.run()
        assert self.table(project).config.record_key_fields == ("id",)
        assert self.rows(project) == [(1, 2)]


class TestFailedRunLeavesNothing(Base):
    MODEL = model("materialized='table'", "select raise_error('no') as v")

    def test_no_table_is_left_and_a_table_that_was_there_stays(self, project):
        run_dbt(["run"], expect_pass=False)
        assert project.adapter.list_relations_without_caching(project.adapter.Relation.create(schema=project.test_schema)) == []
        write_file(model("materialized='table'", "select 'ok' as v"), project.project_root, "models", "m.sql")
        self.run()
        write_file(self.MODEL, project.project_root, "models", "m.sql")
        run_dbt(["run"], expect_pass=False)
        assert self.rows(project) == [("ok",)]


class TestFreshnessFromTheTimeline(Base):
    MODEL = model("materialized='table'", "select 1 as id")

    @pytest.fixture(scope="class")
    def models(self):
        sources = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables:
      - name: m
        config: {freshness: {warn_after: {count: 1, period: hour}}}
"""
        return {"m.sql": self.MODEL, "sources.yml": sources}

    def test_the_last_commit_is_the_time(self, project):
        self.run()
        result = run_dbt(["source", "freshness"]).results[0]
        assert str(result.status) == "pass"
        assert 0 <= result.age < 600


class TestPythonModel(Base):
    @pytest.fixture(scope="class")
    def models(self):
        script = """
import pyarrow as pa

def model(dbt, session):
    dbt.config(materialized='incremental', unique_key='id')
    upstream = dbt.ref('up').toPandas()
    return pa.table({'id': upstream['id'].tolist(), 'twice': [2 * value for value in upstream['id']]})
"""
        return {"up.sql": "select 4 as id", "m.py": script}

    def test_arrow_rows_are_merged_by_key(self, project):
        run_dbt(["run"])
        result = next(result for result in run_dbt(["run"]).results if result.node.name == "m")
        assert result.adapter_response["operation"] == "upsert"
        assert self.rows(project) == [(4, 8)]


@classic_only("the session of the process has a master")
class TestSessionOfTheProcess(Base):
    """`method: session`: dbt works in a SparkSession that the process has already, and leaves it running."""

    MODEL = model("materialized='table'", "select 1 as id")

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, warehouse):
        return {"type": "lakehouse", "threads": 2, "method": "session", "warehouse": warehouse}

    def test_models_run_in_it(self, project, warehouse):
        local = LakehouseCredentials.from_dict({"schema": "s", "warehouse": warehouse, "spark_config": SPARK})
        session = environment_of(local).root_session()  # type: ignore[attr-defined]
        self.run()
        assert self.rows(project) == [(1,)]
        assert session.range(1).count() == 1

