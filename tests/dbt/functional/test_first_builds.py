"""The first build of a model is there when it is whole: one that was cut off is made again, and not gone on with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine import Lakehouse
from tests.support.dbt_project import Project

KILLED = """
import os, sys
from dbt.cli.main import dbtRunner
from lakehouse_engine.table import HoodieTable
HoodieTable.bulk_insert = lambda *_, **__: os._exit(9)
dbtRunner().invoke([*sys.argv[1:], "--profiles-dir", "."])
"""
ROWS = "select id, at from values (1, 10), (2, 20) as rows (id, at)"
NEWER = "{% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}"
CONFIG = "{{ config(unique_key='id', strategy='check', check_cols=['at'], target_schema='s') }}"
SNAPSHOT = "{% snapshot kept %}" + CONFIG + ROWS + "{% endsnapshot %}"


@pytest.mark.parametrize(("command", "name"), [("run", "increment"), ("snapshot", "kept"), ("seed", "raw")])
def test_a_killed_first_build_is_made_again(tmp_path: Path, spark_keys: dict[str, Any], command: str, name: str) -> None:
    shop = Project(tmp_path, spark_keys)
    (tmp_path / "models" / "increment.sql").write_text("{{ config(materialized='incremental', unique_key='id') }}" + ROWS + NEWER)
    for kind, file, text in (("seeds", "raw.csv", "id,at\n1,10\n2,20\n"), ("snapshots", "kept.sql", SNAPSHOT)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / file).write_text(text)
    arguments = [sys.executable, "-c", KILLED, command]
    killed = subprocess.run(arguments, cwd=tmp_path, env=shop.environment, capture_output=True, timeout=300, check=False)
    assert killed.returncode == 9, killed.stdout
    lake = Lakehouse(str(shop.warehouse))
    assert lake.tables() == []
    shop.dbt(command)
    assert sorted(lake.table(f"s.{name}").to_arrow().column("at").to_pylist()) == [10, 20]
    assert list((shop.warehouse / "s" / ".staged").iterdir()) == []
