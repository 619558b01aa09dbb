"""A wrong config is answered before anything runs, with the model and the name that was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.tests.support.dbt import Project

WRONG = {
    "ordering_field='changed_at', unique_key='order_key'": ("ordering_field", "'ordering_fields'"),
    "partitioned_by='order_year'": ("partitioned_by", "'partition_by'"),
    "incremental_strategy='upsert', unique_key='order_key'": ("upsert", "'merge'"),
    "incremental_strategy='merge'": ("merge", "unique_key"),
    "hoodie={'hoodie.index.typ': 'SIMPLE'}": ("hoodie.index.typ", "hoodie.index.type"),
    "table_type='mo', unique_key='order_key'": ("mo", "'mor'"),
}


@pytest.mark.parametrize(("config", "words"), WRONG.items())
@pytest.mark.parametrize("command", ["parse"])
def test_a_wrong_config_is_refused_with_the_model_and_the_nearest_name(
    tmp_path: Path, command: str, config: str, words: tuple[str, str]
) -> None:
    project = Project(tmp_path / "project", tmp_path / "landing")
    model = project.folder / "models" / "marts" / "wrong.sql"
    model.write_text(f"{{{{ config(materialized='incremental', {config}) }}}} select * from {{{{ ref('stg_orders') }}}}")
    run = project.dbt(command)
    assert not run.success
    assert "wrong" in run.message
    assert all(word in run.message for word in words)
    assert not project.warehouse.exists()


def test_a_right_project_parses(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", tmp_path / "landing")
    assert project.dbt("parse").success
