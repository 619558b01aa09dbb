"""The scenarios that dbt-spark has for Hudi's incremental strategies, on both table types, in one commit each."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtConfigError

from lakehouse_engine.table import HoodieTable
from tests.dbt.functional.test_lakehouse import model, values

FIRST = values("id, msg", "1L, 'hello'", "2L, 'goodbye'")
LATER = values("id, msg", "2L, 'yo'", "3L, 'anyway'")
APPENDED = [(1, "hello"), (2, "goodbye"), (2, "yo"), (3, "anyway")]
REPLACED = [(2, "yo"), (3, "anyway")]
MERGED = [(1, "hello"), (2, "yo"), (3, "anyway")]
TYPES = ("cow", "mor")

SCENARIOS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "append": ("incremental_strategy='append'", APPENDED),
    "overwrite": ("incremental_strategy='insert_overwrite'", REPLACED),
    "overwrite_partitions": ("incremental_strategy='insert_overwrite', partition_by='id'", MERGED),
    "merge": ("incremental_strategy='merge', unique_key='id'", MERGED),
    "delete_insert": ("incremental_strategy='delete+insert', unique_key='id'", MERGED),
}
"""The config of a model, and its rows after two runs."""

COLORS = (
    values("id, msg, color", "1L, 'hello', 'blue'", "2L, 'goodbye', 'red'"),
    values("id, msg, color", "2L, 'yo', 'green'", "3L, 'anyway', 'purple'"),
)
PARTLY = [(1, "hello", "blue"), (2, "yo", "red"), (3, "anyway", "purple")]
UPDATES = {"update_columns": "merge_update_columns=['msg']", "exclude_columns": "merge_exclude_columns=['color']"}


class TestHudiStrategies:
    @pytest.fixture(scope="class")
    def models(self):
        found = {}
        for kind in TYPES:
            common = f"materialized='incremental', table_type='{kind}'"
            for name, (config, _) in SCENARIOS.items():
                found[f"{name}_{kind}.sql"] = model(f"{common}, {config}", FIRST, LATER)
            for name, config in UPDATES.items():
                found[f"{name}_{kind}.sql"] = model(f"{common}, incremental_strategy='merge', unique_key='id', {config}", *COLORS)
        return found

    @pytest.fixture(scope="class")
    def runs(self, project):
        return [run_dbt(["run"]) for _ in range(2)]

    @pytest.mark.parametrize("kind", TYPES)
    @pytest.mark.parametrize("name", [*SCENARIOS, *UPDATES])
    def test_rows_after_two_runs_of_one_commit_each(self, project, runs, name, kind):
        rows = project.run_sql(f"select * from {project.test_schema}.{name}_{kind}", fetch="all")
        assert sorted(rows) == (SCENARIOS[name][1] if name in SCENARIOS else PARTLY)
        table = HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}_{kind}")
        assert table.config.table_type.value == ("MERGE_ON_READ" if kind == "mor" else "COPY_ON_WRITE")
        told = [
            one.adapter_response["instant"] for results in runs for one in results if one.node.name == f"{name}_{kind}"
        ]
        assert [one.requested_time for one in table.timeline.completed().writes().instants] == told


class TestMergeWithoutAKey:
    """dbt-spark appends then; here a merge that cannot merge is refused, and the message names what does that."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": model("materialized='incremental', incremental_strategy='merge'", FIRST, LATER)}

    def test_it_is_refused_with_the_strategy_that_appends(self, project):
        with pytest.raises(DbtConfigError, match="'merge' needs a unique_key; without one use 'append'"):
            run_dbt(["run"])


class TestAnotherPayloadClass:
    """A table keeps one for its life: a run with another is refused, and a full refresh builds the table anew."""

    @pytest.fixture(scope="class")
    def models(self):
        payload = "org.apache.hudi.common.model.{{ var('payload') }}"
        hoodie = "{'hoodie.datasource.write.payload.class': 'org.apache.hudi.common.model.' ~ var('payload')}"
        config = "materialized='incremental', unique_key='id', ordering_fields='at', hoodie=" + hoodie
        return {"m.sql": "{{ config(" + config + ") }} select 1 as id, 1 as at -- " + payload}

    def test_it_takes_a_full_refresh(self, project):
        run_dbt(["run", "--vars", "payload: DefaultHoodieRecordPayload"])
        other = ["run", "--vars", "payload: PartialUpdateAvroPayload"]
        results = run_dbt(other, expect_pass=False).results
        assert "run the model with --full-refresh" in results[0].message
        run_dbt([*other, "--full-refresh"])
        run_dbt(other)
        assert project.run_sql(f"select id, at from {project.test_schema}.m", fetch="all") == [(1, 1)]
