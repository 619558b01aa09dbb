"""What becomes of the builds of microbatch models that were killed, when other runs come before the one that makes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dbt.functional.test_killed_batches import DAYS, kill, shop, stored
from tests.support.dbt_project import Project

__all__ = ["shop"]
ALL = list(range(DAYS))
PROTECTED = """
on-run-start: ["{{ lakehouse.protect() }}"]
on-run-end: ["{{ lakehouse.restore_failed(results) }}"]
"""
NO_NEWS = "models: [{name: days, columns: [{name: id, data_tests: [{accepted_values: {arguments: {values: [0, 1]}}}]}]}]"


@pytest.fixture
def days(shop: Project) -> Path:
    """The model of a build that was killed behind two days."""
    kill(shop, "--threads", "1")
    assert stored(shop) == ([0, 1], True)
    return shop.folder / "models" / "days.sql"


def test_a_run_whose_first_batch_fails_leaves_it_to_the_next_one(shop: Project, days: Path) -> None:
    text = days.read_text()
    days.write_text(f"{text} where raise_error('broken') is null")
    assert "it is made again" in shop.dbt("run", fails=True)
    days.write_text(text)
    assert stored(shop) == ([0, 1], True)
    assert "it is made again" in shop.dbt("retry")
    assert stored(shop) == (ALL, False)


def test_a_run_without_rows_does_not_make_it_again(shop: Project, days: Path) -> None:
    assert "it is made again" not in shop.dbt("run", "--empty")
    assert stored(shop) == ([0, 1], True)
    shop.dbt("run")
    assert stored(shop) == (ALL, False)


def test_a_table_of_all_rows_is_whole(shop: Project, days: Path) -> None:
    text = days.read_text()
    days.write_text(text.replace("'incremental'", "'table'").replace("incremental_strategy='microbatch', ", ""))
    shop.dbt("run")
    assert stored(shop) == (ALL, False)


def test_where_a_protected_run_is_taken_back_it_is_unfinished_still(shop: Project, days: Path) -> None:
    project = shop.folder / "dbt_project.yml"
    project.write_text(project.read_text() + PROTECTED)
    tests = shop.folder / "models" / "tests.yml"
    tests.write_text(NO_NEWS)
    assert "Restored s.days" in shop.dbt("build", fails=True)
    assert stored(shop) == ([0, 1], True)
    tests.unlink()
    shop.dbt("run")
    assert stored(shop) == (ALL, False)


def test_what_was_taken_back_is_not_made_again(shop: Project, days: Path) -> None:
    shop.dbt("run")
    shop.dbt("run-operation", "savepoint", "--args", "{model: days, name: whole}")
    kill(shop, "--full-refresh", "--threads", "1")
    assert stored(shop) == ([0, 1], True)
    shop.dbt("run-operation", "restore", "--args", "{model: days, savepoint: whole}")
    assert "it is made again" not in shop.dbt("run")
    assert stored(shop) == (ALL, False)


def test_a_refresh_that_fails_before_its_first_commit_leaves_the_table_whole(shop: Project, days: Path) -> None:
    shop.dbt("run")
    text = days.read_text()
    days.write_text(f"{text} where raise_error('broken') is null")
    shop.dbt("run", "--full-refresh", fails=True)
    days.write_text(text)
    assert "it is made again" not in shop.dbt("run")
    assert stored(shop) == (ALL, False)
    assert "it is made again" not in shop.dbt("run")
