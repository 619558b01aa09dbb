"""Savepoints and restores as an analytics engineer types them, some as `dbt` processes of their own, and protected runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from lakehouse_engine.table import HoodieTable
from tests.support.dbt_project import Project
from tests.support.readers import assert_same_rows

MODEL = """
{{{{ config(
    materialized='incremental', unique_key='id', table_type='{table_type}', partition_by='part', tags=['orders'],
    cleaning={{'automatic': false, 'commits_retained': 1}}, archiving={{'automatic': false}}{more},
) }}}}
select cast(id as int) as id, cast(id % 3 as string) as part, concat('order ', id, ' on day ', {{{{ var('day') }}}}) as note
from range({{{{ var('low') }}}}, {{{{ var('high') }}}})
"""
TABLES = ("orders_cow", "orders_mor")


class Story(Project):
    """A project of two tables with the same rows, one of each type."""

    def __init__(self, folder: Path, spark: dict[str, Any]) -> None:
        super().__init__(folder, spark, vars={"day": 1, "low": 0, "high": 30})
        (folder / "models" / "orders_cow.sql").write_text(MODEL.format(table_type="cow", more=""))
        (folder / "models" / "orders_mor.sql").write_text(MODEL.format(table_type="mor", more=", compaction={'mode': 'none'}"))

    def day(self, day: int, low: int, high: int, *arguments: str, alone: bool = False) -> None:
        self.dbt("run", "--vars", f"{{day: {day}, low: {low}, high: {high}}}", *arguments, alone=alone)

    def operation(self, name: str, arguments: str = "tag: orders", *, fails: bool = False, alone: bool = False) -> str:
        return self.dbt("run-operation", name, "--args", f"{{{arguments}}}", fails=fails, alone=alone)


@pytest.mark.timeout(900)
def test_a_broken_table_comes_back_whatever_was_cleaned_compacted_and_archived_in_between(
    tmp_path: Path, spark_keys: dict[str, Any]
) -> None:
    story = Story(tmp_path, spark_keys)
    story.day(1, 0, 30)
    story.day(2, 10, 35)
    kept = {name: story.rows(name) for name in TABLES}
    assert_same_rows(kept["orders_cow"].select(["id", "part", "note"]), kept["orders_mor"].select(["id", "part", "note"]))

    assert "before_migration" in story.operation("savepoint", "tag: orders, name: before_migration, comment: all is well", alone=True)
    story.day(3, 0, 40)
    story.day(4, 5, 30)
    assert "completed" in story.operation("compact", "model: orders_mor").lower()
    story.operation("clean", "tag: orders")
    story.day(5, 0, 0, "--full-refresh")
    story.operation("clean", "tag: orders, retain_commits: 1")
    story.operation("archive", "tag: orders, min_commits: 2, max_commits: 3")
    assert story.table("orders_mor").to_arrow().num_rows == 0

    shown = story.operation("restore", "tag: orders, savepoint: before_migration, dry_run: true")
    assert "dry run" in shown
    assert story.table("orders_cow").to_arrow().num_rows == 0
    refused = story.operation("restore", "model: orders_cow, savepoint: after_migration", fails=True)
    assert "before_migration" in refused
    story.operation("restore", "tag: orders, savepoint: before_migration", alone=True)
    for name in TABLES:
        assert_same_rows(story.rows(name), kept[name])
    assert "whole" in story.operation("verify")
    assert "restore" in story.operation("history", "model: orders_mor")

    story.day(6, 30, 50, alone=True)
    for name in TABLES:
        notes = {row["id"]: row["note"] for row in story.rows(name).to_pylist()}
        assert sorted(notes) == list(range(50))
        assert (notes[0], notes[20], notes[40]) == ("order 0 on day 1", "order 20 on day 2", "order 40 on day 6")
    assert "before_migration" in story.operation("savepoints", "all: true")
    story.operation("delete_savepoint", "tag: orders, savepoint: before_migration")
    assert story.table("orders_cow").savepoints() == []


ORDERS = """
{{ config(materialized='incremental', unique_key='id', table_type=var('kind', 'cow')) }}
select * from values {% if is_incremental() %}(1, {{ var('amount') }}), (3, 30){% else %}(1, 10), (2, 20){% endif %} as t(id, amount)
"""
RATES = "{{ config(materialized='table') }} select {{ var('amount') }} as rate"
TESTS = """
models:
  - name: orders
    columns:
      - name: amount
        data_tests:
          - accepted_values: {arguments: {values: [10, 11, 20, 30], quote: false}}
"""


class TestProtectedRun:
    @pytest.fixture(scope="class")
    def models(self):
        return {"orders.sql": ORDERS, "rates.sql": RATES, "schema.yml": TESTS}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {
            "on-run-start": ["{{ lakehouse.protect() }}"],
            "on-run-end": ["{{ lakehouse.restore_failed(results) }}"],
            "vars": {"amount": 10, "kind": self.KIND},
        }

    KIND = "cow"

    def table(self, project, name):
        return HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}")

    def rows(self, project):
        return sorted((row["id"], row["amount"]) for row in self.table(project, "orders").to_arrow().to_pylist())

    def test_tables_whose_tests_fail_are_what_they_were_before_the_run(self, project):
        run_dbt(["build"])
        run_dbt(["build", "--vars", "{amount: 11}"])
        assert self.rows(project) == [(1, 11), (2, 20), (3, 30)]
        instant = self.table(project, "orders").timeline.completed().writes().last()

        run_dbt(["build", "--vars", "{amount: -5}"], expect_pass=False)
        assert self.rows(project) == [(1, 11), (2, 20), (3, 30)]
        assert self.table(project, "orders").timeline.completed().writes().last() == instant
        assert self.table(project, "rates").to_arrow().to_pylist() == [{"rate": -5}]
        assert self.table(project, "orders").savepoints() == self.table(project, "rates").savepoints() == []

    def test_commands_that_build_nothing_protect_nothing(self, project):
        run_dbt(["run"])
        for command in (["compile"], ["docs", "generate"], ["show", "--select", "orders"], ["test"]):
            run_dbt(command)
            assert self.table(project, "orders").savepoints() == [], command

    def test_a_table_that_the_run_builds_anew_is_let_go(self, project):
        run_dbt(["run"])
        other = "cow" if self.KIND == "mor" else "mor"
        run_dbt(["run", "--full-refresh", "--vars", f"{{kind: {other}}}"])
        assert self.table(project, "orders").savepoints() == []
        assert self.rows(project) == [(1, 10), (2, 20)]


class TestProtectedRunOfMergeOnRead(TestProtectedRun):
    KIND = "mor"
