"""A build of a microbatch model that is killed between two batches is made again: the next run would go on with the newest batches."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.compat import UTC
from tests.support.dbt_project import Project

KILLED = """
import os, sys
from dbt.cli.main import dbtRunner
from lakehouse_engine.timeline.active import ActiveTimeline
complete, done = ActiveTimeline.complete, []
def completed(self, *given):
    done.append(complete(self, *given))
    return os._exit(9) if len(done) == 2 else done[-1]
ActiveTimeline.complete = completed
dbtRunner().invoke([*sys.argv[1:], "--profiles-dir", "."])
"""
DAYS = 5


@pytest.fixture
def shop(tmp_path: Path, spark_keys: dict[str, Any]) -> Project:
    """Five days until today, each of one row."""
    begin = (datetime.now(UTC) - timedelta(days=DAYS - 1)).strftime("%Y-%m-%d")
    made = Project(tmp_path, spark_keys)
    rows = f"select id, cast(date_add(date'{begin}', cast(id as int)) as timestamp) as at from range(0, {DAYS})"
    config = f"incremental_strategy='microbatch', event_time='at', batch_size='day', begin='{begin}'"
    (tmp_path / "models" / "source.sql").write_text("{{ config(materialized='view', event_time='at') }} " + rows)
    text = f"{{{{ config(materialized='incremental', {config}) }}}} select * from {{{{ ref('source') }}}}"
    (tmp_path / "models" / "days.sql").write_text(text)
    return made


def kill(shop: Project, *arguments: str) -> None:
    command = [sys.executable, "-c", KILLED, "run", *arguments]
    killed = subprocess.run(command, cwd=shop.folder, env=shop.environment, capture_output=True, timeout=300, check=False)
    assert killed.returncode == 9, killed.stdout


def stored(shop: Project) -> tuple[list[int], bool]:
    """Ids, and whether the table says that its build is not finished."""
    table = Lakehouse(str(shop.warehouse)).table("s.days")
    return sorted(table.to_arrow().column("id").to_pylist()), table.config.unfinished_build is not None


def test_a_killed_build_of_batches_is_made_again(shop: Project) -> None:
    kill(shop)
    assert stored(shop) == ([0, 1], True)
    today = datetime.now(UTC)
    one_day = ["--event-time-start", f"{today:%Y-%m-%d}", "--event-time-end", f"{today + timedelta(days=1):%Y-%m-%d}"]
    shop.dbt("run", *one_day)
    assert stored(shop) == ([0, 1, DAYS - 1], True)
    assert "it is made again" in shop.dbt("run")
    assert stored(shop) == (list(range(DAYS)), False)
    assert "it is made again" not in shop.dbt("run")
    kill(shop, "--full-refresh")
    assert stored(shop) == ([0, 1], True)
    shop.dbt("run")
    assert stored(shop) == (list(range(DAYS)), False)
