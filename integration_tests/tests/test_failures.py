"""A `dbt run` that is killed leaves tables that are readable as of their last commit, and that the next `dbt run` repairs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.conftest import History
from integration_tests.tests.support.dbt import Project, last_instant
from integration_tests.tests.support.expected import Expected
from lakehouse_engine.verify import verify
from tests.support.readers import assert_same_rows, read_with_hudi_rs

MODELS = ("orders", "lineitems", "order_status")
SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
DEADLINE = 180
ATTEMPTS = int(os.environ.get("LAKEHOUSE_KILLED_RUNS", "1"))
"""Every run of the tests has moments of its own, unless `KILL_SEED` repeats those of another."""


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS + 1))
def test_a_killed_run_loses_no_commit_and_the_next_run_repairs_the_tables(
    history: History, expected: Callable[[int], Expected], tmp_path: Path, attempt: int
) -> None:
    assert history.after_second is not None
    project = history.after_second.copy_to(tmp_path / "project")
    before = {name: history.instants[2][name] for name in MODELS}
    delay = random.Random(f"{SEED}/{attempt}").uniform(0.0, 4.0)
    print(f"KILL_SEED={SEED}, attempt {attempt}: killed {delay:.2f} s after the first write began")
    run_and_kill(project, before, delay)

    for name in MODELS:
        table = project.table(name)
        newest = last_instant(table)
        wanted = expected(2) if newest == before[name] else expected(3)
        assert_same_rows(table.to_arrow(), wanted.table(name))
        assert_same_rows(read_with_hudi_rs(project.table_path(name)), table.to_arrow(meta_columns=True))

    run = project.dbt("run", "--select", *MODELS)
    assert not run.failures()
    for name in MODELS:
        table = project.table(name)
        assert_same_rows(table.to_arrow(), expected(3).table(name))
        assert_same_rows(table.to_arrow(as_of=before[name]), expected(2).table(name))
        assert_same_rows(read_with_hudi_rs(project.table_path(name)), table.to_arrow(meta_columns=True))
        assert not verify(table.state).findings


def run_and_kill(project: Project, before: dict[str, str], delay: float) -> None:
    """Start `dbt run` in a process of its own; kill it and its JVM `delay` seconds after it began to write one of the tables."""
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, **project.environment(), "PYTHONPATH": root}
    command = [sys.executable, "-m", "dbt.cli.main", "run", "--select", *MODELS]
    with (project.folder / "killed.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=project.folder, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            give_up = time.monotonic() + DEADLINE
            while not _writing(project, before) and process.poll() is None and time.monotonic() < give_up:
                time.sleep(0.02)
            assert time.monotonic() < give_up, "the run never began to write"
            time.sleep(delay)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _writing(project: Project, before: dict[str, str]) -> bool:
    folders = {name: project.table_path(name) / ".hoodie" for name in before}
    return any(entry[:17].isdigit() and entry[:17] > before[name] for name, folder in folders.items() for entry in os.listdir(folder))
