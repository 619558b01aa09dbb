"""An executor killed in the middle: Spark runs its tasks again, the rows are right, and nothing is left of the lost attempts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.index import simple
from lakehouse_engine.index.lookup import tag_files
from lakehouse_engine.services.compact import compaction
from lakehouse_engine.services.compact.merging import compact_slice
from lakehouse_engine.verify.table import verify
from lakehouse_engine.write import routes
from lakehouse_engine.write.plan.write_plan import run_task
from lakehouse_engine.write.shares import route
from tests.cluster.cluster import Cluster
from tests.support.processes import PATIENCE, wait_for

ROWS, FILES = 24_000, 6


def batch(value: int) -> pa.Table:
    return pa.table({"id": np.arange(ROWS), "part": [f"p{number % FILES}" for number in range(ROWS)], "n": np.full(ROWS, value)})


class Held:
    """A task that says that it has begun, and ends as it would once it is let go."""

    def __init__(self, function: Callable[[Any], Any], folder: Path) -> None:
        self.function, self.folder = function, folder

    def __call__(self, task: Any) -> Any:
        (self.folder / f"{os.getppid()}-{os.getpid()}").touch()
        result = self.function(task)
        wait_for("the kill", lambda: (self.folder / "go").exists())
        return result


@contextmanager
def killing(cluster: Cluster, folder: Path) -> Iterator[list[int]]:
    """Kill one executor, once a task has written its files and not yet said so; the killed one's process id."""
    folder.mkdir()
    killed: list[int] = []

    def kill() -> None:
        try:
            wait_for("tasks at work", lambda: len(list(folder.iterdir())) >= 2)
            victim = cluster.executors()[0]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        finally:
            (folder / "go").touch()

    thread = threading.Thread(target=kill)
    thread.start()
    yield killed
    thread.join(PATIENCE)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> HoodieTable:
    made = lakehouse.create_table("shop.t", schema=batch(0).schema, record_key=["id"], partition_by=["part"], table_type=request.param)
    made.bulk_insert(batch(0))
    return made


def data_files(table: HoodieTable) -> set[str]:
    paths = {entry.path for entry in table.storage.walk()}
    return {path for path in paths if not path.startswith(".hoodie/") and "partition_metadata" not in path}


def named_files(table: HoodieTable) -> set[str]:
    timeline = table.state.timeline.completed()
    stats = [stat for instant in timeline.writes() for stat in table.state.commit_metadata(instant).write_stats()]
    return {str(stat.path) for stat in stats}


def check(table: HoodieTable, value: int) -> None:
    read = table.to_arrow(["id", "n"])
    assert read.num_rows == pc.count_distinct(read["id"]).as_py() == ROWS
    assert pc.unique(read["n"]).to_pylist() == [value]
    assert data_files(table) <= named_files(table)
    assert [entry.name for entry in table.storage.list(TEMP_FOLDER)] == []
    assert verify(table.state).ok


def test_an_executor_killed_in_an_upsert(cluster: Cluster, table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "run_task", Held(run_task, tmp_path / "held"))
    with killing(cluster, tmp_path / "held") as killed:
        table.upsert(batch(1))
    assert killed
    check(table, 1)


@pytest.mark.parametrize("step", ["deal_stored", "plan_share", "run_routed"])
def test_an_executor_killed_while_shares_are_planned(
    cluster: Cluster, table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    module = routes if step == "run_routed" else route
    monkeypatch.setattr(module, step, Held(getattr(module, step), tmp_path / "held"))
    with killing(cluster, tmp_path / "held") as killed:
        assert table.upsert(batch(1), options={"lakehouse.write.broadcast.max.bytes": 0}).route == "LARGE"
    assert killed
    check(table, 1)


def test_an_executor_killed_while_keys_are_looked_up(
    cluster: Cluster, table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simple, "tag_files", Held(tag_files, tmp_path / "held"))
    with killing(cluster, tmp_path / "held") as killed:
        table.upsert(batch(1))
    assert killed
    check(table, 1)


@pytest.mark.parametrize("table", ["mor"], indirect=True)
def test_an_executor_killed_in_a_compaction(cluster: Cluster, table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.upsert(batch(2), options={"hoodie.compact.inline": "false"})
    monkeypatch.setattr(compaction, "compact_slice", Held(compact_slice, tmp_path / "held"))
    with killing(cluster, tmp_path / "held") as killed:
        table.compact()
    assert killed
    check(table, 2)
