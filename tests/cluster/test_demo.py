"""The demo project, built on the cluster, gives what it gives on embedded Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lakehouse_engine import Lakehouse
from tests.cluster.cluster import INTERPRETER, ROOT, Cluster, conf

DAYS = (["--vars", "{through: '2026-01-01'}"], ["--exclude", "resource_type:seed", "--vars", "{through: '2026-01-02'}"])


def build(folder: Path, settings: dict[str, str]) -> Path:
    """Both days of the project; the warehouse that they make."""
    shutil.copytree(ROOT / "examples" / "demo", folder, ignore=shutil.ignore_patterns("lakehouse", "target", "logs"))
    lines = [f'        "{key}": "{value}"' for key, value in settings.items()]
    profile = ["demo:", "  target: dev", "  outputs:", "    dev:", "      type: lakehouse", "      schema: analytics"]
    (folder / "profiles.yml").write_text("\n".join([*profile, "      spark_config:", *lines]) + "\n")
    for arguments in DAYS:
        run(folder, arguments)
    return folder / "lakehouse"


def run(folder: Path, arguments: Sequence[str]) -> None:
    environment = {**os.environ, "DBT_PROFILES_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [str(Path(INTERPRETER).with_name("dbt")), "build", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def contents(warehouse: Path) -> dict[str, list[dict[str, Any]]]:
    lakehouse = Lakehouse(str(warehouse))
    found = {}
    for name in lakehouse.tables("analytics"):
        rows = lakehouse.table(name).to_arrow().to_pylist()
        found[name] = sorted(rows, key=lambda row: sorted(map(str, row.items())))
    return found


def test_the_demo_project_gives_what_embedded_spark_gives(cluster: Cluster, tmp_path: Path) -> None:
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
    (tmp_path / "scratch").mkdir()
    with ThreadPoolExecutor(2) as pool:
        there = pool.submit(build, tmp_path / "cluster", {**conf(cluster, tmp_path / "scratch")})
        here = pool.submit(build, tmp_path / "local", {"spark.master": "local[1]", **quick})
        assert contents(there.result()) == contents(here.result()) != {}
