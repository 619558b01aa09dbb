"""The demo project with nothing but its warehouse changed gives what it gives in a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse_engine import Lakehouse
from tests.object_store.dbt_store import Store, s3_store
from tests.support.dbt_project import ROOT

__all__ = ["s3_store"]
pytestmark = [pytest.mark.dbt, pytest.mark.slow]

DAYS = (["--vars", "{through: '2026-01-01'}"], ["--exclude", "resource_type:seed", "--vars", "{through: '2026-01-02'}"])
SPARK = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def build(folder: Path, place: Mapping[str, Any]) -> None:
    """Both days of the project."""
    shutil.copytree(Path(ROOT, "examples", "demo"), folder, ignore=shutil.ignore_patterns("lakehouse", "target", "logs"))
    target = {"type": "lakehouse", "schema": "analytics", "spark_config": SPARK, **place}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"demo": {"target": "dev", "outputs": {"dev": target}}}))
    environment = {**os.environ, "DBT_PROFILES_DIR": str(folder), "DO_NOT_TRACK": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    for arguments in DAYS:
        command = [sys.executable, "-m", "dbt.cli.main", "build", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def contents(lakehouse: Lakehouse) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name in lakehouse.tables("analytics"):
        rows = lakehouse.table(name).to_arrow().to_pylist()
        found[name] = sorted(rows, key=lambda row: sorted(map(str, row.items())))
    return found


def test_the_demo_project_gives_what_it_gives_in_a_directory(s3_store: Store, tmp_path: Path) -> None:
    place = s3_store.place("demo")
    build(tmp_path / "there", {"warehouse": place, "storage_options": dict(s3_store.options)})
    build(tmp_path / "here", {"warehouse": str(tmp_path / "lakehouse")})
    here, there = Lakehouse(str(tmp_path / "lakehouse")), Lakehouse(place, storage_options=s3_store.options)
    assert contents(there) == contents(here) != {}
    assert there.views("analytics") == here.views("analytics")
