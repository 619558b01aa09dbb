"""What a user reads of a model whose rows cannot be computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import connect_server
from tests.support.dbt_project import Project


def test_an_error_of_the_rows_is_told_once_and_without_a_stack_of_java(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Project(tmp_path, spark_keys)
    (tmp_path / "models" / "broken.sql").write_text(
        "{{ config(materialized='table') }} select cast(raise_error('no rows today') as int) as id"
    )
    told = shop.dbt("run", fails=True, alone=True)
    assert "Failure in model broken" in told
    assert "no rows today" in told
    assert "org.apache" not in told
    log = (tmp_path / "logs" / "dbt.log").read_text(encoding="utf-8")
    assert connect_server.WANTED or "\tat org.apache.spark" in log
