"""dbt-tests-adapter: incremental."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import ClassVar

import pytest
from dbt.artifacts.schemas.results import RunStatus
from dbt.tests.adapter.incremental import test_incremental_unique_id as unique_id
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.util import run_dbt, run_dbt_and_capture

from lakehouse_engine.spark.frames import statement_views


class TestIncrementalUniqueKey(unique_id.BaseIncrementalUniqueKey):
    """With one row a state: the suite's models with the key `state` start with two rows of one, of which a table here keeps the latest."""

    @pytest.fixture(scope="class")
    def seeds(self):
        return {
            "seed.csv": unique_id.seeds__seed_csv.replace("NY,New York", "NM,New York"),
            "add_new_rows.sql": unique_id.seeds__add_new_rows_sql,
            "duplicate_insert.sql": unique_id.seeds__duplicate_insert_sql,
        }

    @pytest.fixture(scope="class")
    def models(self):
        texts = {name: text for name, text in vars(unique_id).items() if name.startswith("models__")}
        names = {name: name.removeprefix("models__").removeprefix("expected__").removesuffix("_sql") for name in texts}
        return {f"{names[name]}.sql": text.replace("'NY','New York'", "'NM','New York'") for name, text in texts.items()}

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

    def test_run_with_event_time(self, project, insert_two_rows_sql):
        super().test_run_with_event_time(project, insert_two_rows_sql)
        path = Path(project.project_root) / "target" / "run_results.json"
        response = next(
            one["adapter_response"] for one in json.loads(path.read_text())["results"] if one["unique_id"].endswith(".microbatch_model")
        )
        assert response["instant"] == response["instants"][-1]
        assert response["inserts"] >= 1


class TestMicrobatchesAtOnce:
    """dbt runs the batches between the first and the last in threads: each is one commit, and none takes another's rows."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return {**dbt_profile_target, "threads": 4}

    @pytest.fixture(scope="class")
    def models(self):
        daily = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"
        all_of, merged = "select * from {{ ref('up') }}", "unique_key='id', table_type='mor'"
        days = "select id, timestamp '2020-01-01 12:00:00Z' + make_dt_interval(id % 8) as at, {{ var('v') }} as v from range(400)"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + days,
            "cow.sql": "{{ config(" + daily + ", concurrent_batches=true) }} " + all_of,
            "mor.sql": "{{ config(" + daily + ", concurrent_batches=true, " + merged + ") }} " + all_of,
            "turns.sql": "{{ config(" + daily + ", concurrent_batches=false) }} " + all_of,
        }

    @staticmethod
    def most_at_once(output, model):
        """How many batches of the model had begun and not ended, at the most."""
        steps = re.findall(rf"(START|OK created) batch \S+ of \S*\.{model}\b", output)
        return max(itertools.accumulate(1 if step == "START" else -1 for step in steps))

    @pytest.mark.parametrize("value", [1, 2])
    def test_every_batch_is_there_once(self, project, value):
        command = ["run", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-09", "--vars", f"v: {value}"]
        results, output = run_dbt_and_capture(["--debug", *command])
        assert self.most_at_once(output, "cow") > 1
        assert self.most_at_once(output, "turns") == 1
        assert {str(one.status) for one in results} == {"success"}
        for model in ("cow", "mor", "turns"):
            response = next(one.adapter_response for one in results if one.node.name == model)
            assert len(response["instants"]) == len(set(response["instants"])) == 8
            found = project.run_sql(f"select id, at, v from {project.test_schema}.{model} order by id", fetch="all")
            wanted = project.run_sql(f"select id, at, v from {project.test_schema}.up order by id", fetch="all")
            assert [tuple(row) for row in found] == [tuple(row) for row in wanted]


class TestRetryOfBatchesOfAFullRefresh:
    """dbt-core runs the first batch that it retries as a full refresh, too."""

    DAYS = ("--event-time-start", "2020-01-01", "--event-time-end", "2020-01-04")

    @pytest.fixture(scope="class")
    def models(self):
        days = "select timestamp '2020-01-01 12:00:00Z' + make_dt_interval(id) as at, if(id = 1, 0, 1) as v from range(3)"
        daily = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + days,
            "m.sql": "{{ config(" + daily + ") }} select at, 1 / v as v from {{ ref('up') }}",
        }

    def test_batches_that_succeeded_stay(self, project):
        run_dbt(["run", "--full-refresh", *self.DAYS], expect_pass=False)
        project.run_sql(f"update {project.test_schema}.up set v = 1")
        run_dbt(["retry"])
        days = project.run_sql(f"select day(at) from {project.test_schema}.m order by at", fetch="all")
        assert [day for (day,) in days] == [1, 2, 3]


class TestMicrobatchOfRowsThatNoBatchReplaces:
    """A model whose own event time is another than that of what it reads: its rows would be there once more after each run."""

    RUN = ("run", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-03")

    @pytest.fixture(scope="class")
    def models(self):
        config = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"
        source = "select day as id, timestamp '2020-01-01 12:00:00Z' + make_dt_interval(day) as at from values (0), (1) as t(day)"
        late = "case when id = 1 then at + interval 1 day else at end as at"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + source,
            "m.sql": "{{ config(" + config + ") }} select id, {{ 'at' if var('well') else \"" + late + "\" }} from {{ ref('up') }}",
        }

    def test_the_batch_is_refused_and_changes_nothing(self, project):
        run_dbt([*self.RUN, "--vars", "well: true"])
        stored = project.run_sql(f"select id, at from {project.test_schema}.m order by id", fetch="all")
        results = run_dbt([*self.RUN, "--vars", "well: false", "--select", "m"], expect_pass=False).results
        assert "PARTIAL SUCCESS (1/2)" in results[0].message
        assert project.run_sql(f"select id, at from {project.test_schema}.m order by id", fetch="all") == stored


class TestFirstBatchOfRowsThatNoBatchReplaces:
    """It builds the table, or builds it anew, and a row that no later run finds would be there for good."""

    RUN = ("run", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-03")
    ROWS: ClassVar[dict[str, str]] = {
        "late": "at + interval 1 day as at",
        "never": "if(id = 0, null, at) as at",
        "text": "cast(at as string) as at",
        "gone": "at as other",
    }

    @pytest.fixture(scope="class")
    def models(self):
        config = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"
        source = "select day as id, timestamp '2020-01-01 12:00:00Z' + make_dt_interval(day) as at from values (0), (1) as t(day)"
        one = "{{{{ config({}) }}}} select id, {{% if var('well') %}} at {{% else %}} {} {{% endif %}} from {{{{ ref('up') }}}}"
        return {
            "up.sql": "{{ config(materialized='table', event_time='at') }} " + source,
            **{f"{name}.sql": one.format(config, rows) for name, rows in self.ROWS.items()},
        }

    def test_the_batch_is_refused_and_the_model_with_it(self, project):
        results, output = run_dbt_and_capture([*self.RUN, "--vars", "well: false"], expect_pass=False)
        assert {one.node.name: str(one.status) for one in results} == {"up": "success", **dict.fromkeys(self.ROWS, "error")}
        assert "late: `at` >= '2020-01-01 00:00:00+00:00' and `at` < '2020-01-02 00:00:00+00:00' does not hold for 1 row(s)" in output
        assert "never: `at` >= '2020-01-01 00:00:00+00:00' and `at` < '2020-01-02 00:00:00+00:00' does not hold for 1 row(s)" in output
        assert "text: event_time 'at' is of type string, and batches are ranges of time: cast it to timestamp or date" in output
        assert "gone: event_time names the column 'at', which the model does not have" in output
        run_dbt([*self.RUN, "--vars", "well: true"])
        stored = {name: project.run_sql(f"select id, at from {project.test_schema}.{name} order by id", fetch="all") for name in self.ROWS}
        assert all(len(rows) == 2 for rows in stored.values())
        run_dbt([*self.RUN, "--vars", "well: false", "--full-refresh", "--exclude", "up"], expect_pass=False)
        for name, rows in stored.items():
            assert project.run_sql(f"select id, at from {project.test_schema}.{name} order by id", fetch="all") == rows


class TestEventTimesThatAreText:
    """What a model reads is cut by its event time: texts of dates would be a day off."""

    @pytest.fixture(scope="class")
    def models(self):
        config = "materialized='incremental', incremental_strategy='microbatch', event_time='day', batch_size='day', begin='2024-01-01'"
        source = "select id, string(date_add(date'2024-01-01', cast(id as int))) as day from range(3)"
        return {
            "up.sql": "{{ config(materialized='table', event_time='day') }} " + source,
            "batches.sql": "{{ config(" + config + ") }} select id, cast(day as date) as day from {{ ref('up') }}",
            "sample.sql": "{{ config(materialized='table') }} select * from {{ ref('up') }}",
        }

    @pytest.mark.parametrize(
        ("model", "span"),
        [
            ("batches", ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")),
            ("sample", ("--sample", "{'start': '2024-01-01', 'end': '2024-01-04'}")),
        ],
    )
    def test_the_model_that_reads_them_is_refused(self, project, model, span):
        _, output = run_dbt_and_capture(["run", "--select", "up", model, *span], expect_pass=False)
        assert re.search(r"event_time day of \S+\.up is text, and is to be compared with times: make it a timestamp or a date", output)


class TestMicrobatchesOfDates:
    """A day is a day, whatever the session's time zone is."""

    SOURCE = "select id, date_add(date'2024-01-01', cast(id as int)) as day, '{{ var(\"run\", 1) }}' as run from range(3)"

    @pytest.fixture(scope="class", params=["Asia/Kolkata", "America/New_York"])
    def dbt_profile_target(self, request, warehouse, spark_keys):
        settings = {**spark_keys.get("spark_config", {}), "spark.sql.session.timeZone": request.param}
        return {"type": "lakehouse", "threads": 4, "warehouse": warehouse, **spark_keys, "spark_config": settings}

    @pytest.fixture(scope="class")
    def models(self):
        config = "materialized='incremental', incremental_strategy='microbatch', event_time='day', batch_size='day', begin='2024-01-01'"
        return {
            "days.sql": "{{ config(materialized='table', event_time='day') }} " + self.SOURCE,
            "batches.sql": "{{ config(" + config + ") }} select * from {{ ref('days') }}",
        }

    def rows(self, project):
        text = f"select id, cast(day as string), run from {project.test_schema}.batches order by id"
        return [tuple(row) for row in project.run_sql(text, fetch="all")]

    def test_each_batch_has_the_rows_of_its_day(self, project):
        span = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04"]
        run_dbt(["run", *span])
        assert self.rows(project) == [(0, "2024-01-01", "1"), (1, "2024-01-02", "1"), (2, "2024-01-03", "1")]
        run_dbt(["run", "--vars", "{run: 2}", "--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"])
        assert self.rows(project) == [(0, "2024-01-01", "1"), (1, "2024-01-02", "2"), (2, "2024-01-03", "1")]


class TestFilesOfABatch:
    """A batch reads the files of its range: of what the model reads, also through a view, and of its own table."""

    DAYS: ClassVar = {"dates": "date_add(date'2024-01-01', cast(id as int))", "times": "timestamp'2024-01-01' + make_dt_interval(id)"}

    @pytest.fixture(scope="class")
    def models(self):
        config = "materialized='incremental', incremental_strategy='microbatch', event_time='At', batch_size='day', begin='2024-01-01'"
        found = {}
        for name, at in self.DAYS.items():
            up = "{{ config(materialized='table', partition_by='id') }} select id, " + at + " as At from range(4)"
            found[f"up_{name}.sql"] = up
            found[f"view_{name}.sql"] = "{{ config(materialized='view', event_time='`at`') }} select * from {{ ref('up_" + name + "') }}"
            found[f"{name}.sql"] = "{{ config(" + config + ", partition_by='id') }} select * from {{ ref('view_" + name + "') }}"
        return found

    @pytest.mark.parametrize("name", ["dates", "times"])
    def test_others_are_not_given_to_spark(self, project, name, monkeypatch):
        run_dbt(["run", "--select", f"+{name}", "--event-time-start", "2024-01-01", "--event-time-end", "2024-01-05"])
        files, folders, original = set(), set(), statement_views.without_ruled_out

        def counted(plan):
            kept = original(plan)
            files.add((len(plan.files), len(kept.files)))
            folders.add(plan.storage.root.rpartition("/")[2])
            return kept

        monkeypatch.setattr(statement_views, "without_ruled_out", counted)
        run_dbt(["run", "--select", name, "--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"])
        assert files == {(4, 1), (0, 0)}, "none for the types of the view's columns"
        assert folders == {f"up_{name}", name}


UNFITTING = {
    "narrow": ("ignore", "1 as id, 1 as n", "2 as id, 99999999999 as n"),
    "digits": ("append_new_columns", "1 as id, cast(1.5 as decimal(3, 2)) as n", "2 as id, 12345.678 as n"),
    "key": ("ignore", "1 as id, 1 as n", "99999999999 as id, 5 as n"),
    "member": ("append_new_columns", "1 as id, named_struct('f', 1) as n", "2 as id, named_struct('f', 99999999999) as n"),
    "retyped": ("sync_all_columns", "1 as id, 'a' as n", "2 as id, 5 as n"),
}


class TestValuesThatDoNotFit:
    """Refused as Spark's own INSERT does, whatever the session's casts would make of them."""

    @pytest.fixture(scope="class")
    def models(self):
        text = (
            "{{{{ config(materialized='incremental', unique_key='id', on_schema_change='{}',"
            " pre_hook='set spark.sql.ansi.enabled=false') }}}}"
            " select {{% if is_incremental() %}} {} {{% else %}} {} {{% endif %}}"
        )
        return {f"{name}.sql": text.format(policy, later, first) for name, (policy, first, later) in UNFITTING.items()}

    def test_they_are_refused_and_change_nothing(self, project):
        run_dbt(["run"])
        names = sorted(UNFITTING)
        stored = [project.run_sql(f"select * from {project.test_schema}.{name}", fetch="all") for name in names]
        results = run_dbt(["run"], expect_pass=False).results
        assert {result.node.name: str(result.status) for result in results} == dict.fromkeys(names, "error")
        assert all("cannot be stored as" in result.message for result in results), [result.message for result in results]
        assert [project.run_sql(f"select * from {project.test_schema}.{name}", fetch="all") for name in names] == stored
