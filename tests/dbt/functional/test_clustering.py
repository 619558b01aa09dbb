"""The config `clustering` of a model, and the operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.dbt_project import Project

MODEL = """
{{ config(materialized='incremental', incremental_strategy='append', hoodie={'hoodie.parquet.small.file.limit': 0},
          clustering={'order_by': ['v'], 'layout': 'linear', 'trigger': 'inline', 'commits': 2}) }}
select id, 1000 - id as v from range({{ var('low') }}, {{ var('low') + 10 }})
"""


@pytest.mark.timeout(600)
def test_a_model_is_clustered_after_so_many_commits_and_on_request(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    project = Project(tmp_path, spark_keys, vars={"low": 0})
    (tmp_path / "models" / "events.sql").write_text(MODEL)
    for low in (0, 10, 20):
        project.dbt("run", "--vars", f"{{low: {low}}}")
    table = project.table("events")
    operations = [str(entry.operation) for entry in table.history()]
    assert operations.count("CLUSTER") == 1
    shown = project.dbt("run-operation", "cluster", "--args", "{model: events, dry_run: true}")
    assert "planned" in shown
    assert "completed" in project.dbt("run-operation", "cluster", "--args", "{model: events, order_by: [id]}")
    table = project.table("events")
    assert table.to_arrow()["id"].to_pylist() == list(range(30))
