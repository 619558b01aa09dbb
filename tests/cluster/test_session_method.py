"""dbt with `method: session`: the demo project on a session that this process has on the cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.cluster.cluster import ROOT

DAYS = (("build", "--vars", "{through: '2026-01-01'}"), ("build", "--exclude", "resource_type:seed", "--vars", "{through: '2026-01-02'}"))
PROFILE = "demo:\n  target: dev\n  outputs:\n    dev:\n      type: lakehouse\n      schema: analytics\n      method: session\n"


def test_the_demo_project_is_built_on_the_session_of_the_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "examples" / "demo", folder, ignore=shutil.ignore_patterns("lakehouse", "target", "logs"))
    (folder / "profiles.yml").write_text(PROFILE)
    monkeypatch.chdir(folder)
    for arguments in DAYS:
        done = dbtRunner().invoke([*arguments, "--profiles-dir", str(folder)])
        assert done.success, done.exception
    warehouse = Lakehouse(str(folder / "lakehouse"))
    assert all(warehouse.table(name).to_arrow().num_rows for name in warehouse.tables("analytics"))
    assert len(warehouse.tables("analytics")) >= 3
