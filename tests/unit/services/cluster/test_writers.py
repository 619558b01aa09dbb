"""Writers beside a clustering: what they change of a plan, before it runs and while it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine.commit.concurrency.clusterings import take_over
from lakehouse_engine.commit.concurrency.executors import executor_lock
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import ClusteringError, CommitConflictError
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.cluster.fitting import groups_of, read_plan
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, MOR, SCHEMA, TIMEOUT_MS, content, rows
from tests.unit.services.cluster.test_run import HELD, SMALL, filled
from tests.unit.services.versions import version

__all__ = ["version"]

REJECT = {**SMALL, "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy"}
WHOLE = {**SMALL, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}


@pytest.fixture(params=[COW, MOR])
def table(request: pytest.FixtureRequest, tmp_path: Path, version: TableVersion) -> LocalTable:
    """On disk, where a lock has a file."""
    return filled(on_disk(tmp_path, request.param, version, SMALL))


def on_disk(
    folder: Path, table_type: str, version: TableVersion, options: dict[str, Any], properties: Mapping[str, str] | None = None
) -> LocalTable:
    storage = LocalStorage(str(folder))
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["part"], table_type=table_type, properties=properties or {}, version=version)
    create_table(storage, spec)
    return LocalTable(storage, options, lock_timeout_ms=TIMEOUT_MS)


class Meanwhile(LocalRunner):
    """Something happens when all tasks are done."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def run(self, function: Any, tasks: Sequence[Any], *, name: str) -> list[Any]:
        made = super().run(function, tasks, name=name)
        self.act()
        return made


def planned(table: LocalTable) -> Instant:
    time, state = table.schedule_clustering("n").instant, table.state
    assert time is not None
    return Instant(time, state.format.clustering_action, State.REQUESTED)


def partitions(table: LocalTable, instant: Instant) -> list[str | None]:
    return [one.partition_path for group in groups_of(read_plan(table.state, instant)) for one in group.slices or ()]


CHANGES: dict[str, Callable[[LocalTable], object]] = {
    "upsert": lambda table: table.upsert(rows({4: 21})),
    "delete": lambda table: table.delete(rows({4: 0})),
    "overwrite": lambda table: table.insert_overwrite(rows({4: 21})),
    "drop": lambda table: table.delete_partitions(["part=a"]),
}
AFTER = {
    "upsert": {**HELD, 4: 21},
    "delete": {1: 50, 2: 40, 3: 30, 5: 10},
    "overwrite": {4: 21, 5: 10},
    "drop": {5: 10},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_write_takes_its_groups_out_of_the_plan(table: LocalTable, change: str) -> None:
    instant = planned(table)
    CHANGES[change](table)
    assert partitions(table, instant) == ["part=b"]
    assert content(table) == AFTER[change]
    result = table.run_clustering()
    assert (result.instant, result.files_replaced) == (instant.requested_time, 1)
    assert content(table) == AFTER[change]
    assert verify(table.state).ok
    table.cluster("n")
    assert content(table) == AFTER[change]


@pytest.mark.parametrize("change", CHANGES)
def test_a_write_while_it_runs_wins_and_the_other_groups_are_clustered(table: LocalTable, change: str) -> None:
    instant = planned(table)
    result = table.run_clustering(runner=Meanwhile(lambda: CHANGES[change](table)))
    assert (result.state, result.instant, result.groups_lost, result.files_replaced) == ("completed", instant.requested_time, 1, 1)
    assert content(table) == AFTER[change]
    assert verify(table.state).ok
    assert {path for path, _ in _made(table, instant)} == {"part=b"}
    table.upsert(rows({4: 22}))
    assert content(table) == {**AFTER[change], 4: 22}


def _made(table: LocalTable, instant: Instant) -> set[tuple[str, str]]:
    """Data files of the instant, by their partitions."""
    entries = [entry.path for entry in table.storage.walk() if f"_{instant.requested_time}.parquet" in entry.path]
    return {(path.rpartition("/")[0], path) for path in entries if not path.startswith(".hoodie")}


def test_a_plan_is_changed_under_the_table_lock(tmp_path: Path, version: TableVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by writes that give it back while they make their files: a run that is alive publishes under it."""
    table = filled(on_disk(tmp_path, COW, version, SMALL, {"hoodie.index.type": "SIMPLE"}))
    planned(table)
    held: list[bool] = []

    def seen(state: TableState, *given: Any, **named: Any) -> None:
        held.append(TableLock(state.storage).is_held)
        take_over(state, *given, **named)

    monkeypatch.setattr("lakehouse_engine.write.operation.take_over", seen)
    table.upsert(rows({4: 21}))
    assert held == [True]
    assert content(table) == {**HELD, 4: 21}


def test_writes_to_all_groups_leave_no_clustering(table: LocalTable) -> None:
    instant = planned(table)

    def change() -> None:
        table.upsert(rows({4: 21}))
        table.upsert(rows({5: 11}, "b"))

    with pytest.raises(ClusteringError, match="was removed while it ran"):
        table.run_clustering(runner=Meanwhile(change))
    assert content(table) == {**HELD, 4: 21, 5: 11}
    assert list(table.state.timeline.pending()) == []
    assert not _made(table, instant)
    assert verify(table.state).ok
    assert table.cluster("n").files_replaced == 3


def test_a_plan_of_which_nothing_is_left_goes(table: LocalTable) -> None:
    planned(table)
    table.insert_overwrite_table(rows({7: 7}))
    assert list(table.state.timeline.pending()) == []
    assert table.run_clustering().state == "none"
    assert content(table) == {7: 7}


def test_inserts_leave_a_plan_alone(tmp_path: Path, version: TableVersion) -> None:
    table = filled(on_disk(tmp_path, COW, version, {}))  # with small files to fill
    instant = planned(table)
    table.insert(rows({8: 8}))
    assert sorted(map(str, partitions(table, instant))) == ["part=a", "part=b"]
    assert table.run_clustering().groups_lost == 0
    assert content(table) == {**HELD, 8: 8}


def test_the_strategy_that_rejects_refuses_the_write(table: LocalTable) -> None:
    instant = planned(table)
    before = partitions(table, instant)
    table.options = dict(REJECT)
    for change in CHANGES.values():
        with pytest.raises(CommitConflictError, match="a pending clustering plans to rewrite this file group"):
            change(table)
    assert (content(table), partitions(table, instant)) == (HELD, before)
    table.insert(rows({8: 8}))
    assert table.run_clustering().groups_lost == 0
    assert content(table) == {**HELD, 8: 8}


def test_the_whole_plan_is_taken_back_if_the_option_says_so(table: LocalTable) -> None:
    planned(table)
    table.options = dict(WHOLE)
    table.upsert(rows({4: 21}))
    assert list(table.state.timeline.pending()) == []
    assert content(table) == {**HELD, 4: 21}


def test_what_a_dead_executor_left_goes_with_its_plan(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = planned(table)
    _killed(table, monkeypatch)
    assert _made(table, instant)
    table.options = dict(WHOLE)
    table.upsert(rows({4: 21}))
    assert not _made(table, instant)
    assert content(table) == {**HELD, 4: 21}
    assert verify(table.state).ok


def test_a_dead_executor_is_taken_over_without_what_was_changed_since(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = planned(table)
    _killed(table, monkeypatch)
    table.upsert(rows({4: 21}))
    assert table.state.timeline.find(instant.requested_time) == instant.at(State.INFLIGHT)
    result = table.run_clustering()
    assert (result.state, result.files_replaced) == ("completed", 1)
    assert content(table) == {**HELD, 4: 21}
    assert verify(table.state).ok


def test_a_commit_of_a_dead_executor_that_may_come_yet_is_ruled_out(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an object store: a late commit would have the groups without the write."""
    instant = planned(table)
    _killed(table, monkeypatch)
    monkeypatch.setattr("lakehouse_engine.commit.concurrency.clusterings.may_come", lambda state, dead: dead.state is State.INFLIGHT)
    table.upsert(rows({4: 21}))
    monkeypatch.undo()
    state = table.state
    done = state.timeline.find(instant.requested_time)
    assert done is not None
    assert done.is_completed
    assert list(state.commit_metadata(done).write_stats()) == []
    assert content(table) == {**HELD, 4: 21}
    table.insert(rows({8: 8}, "c"))
    assert not _made(table, instant)
    assert table.cluster("n").files_replaced >= 3
    assert content(table) == {**HELD, 4: 21, 8: 8}
    assert verify(table.state).ok


class Killed(BaseException):
    """Ends a run as a kill does: nothing is taken back."""


def _killed(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def end() -> None:
        raise Killed

    monkeypatch.setattr("lakehouse_engine.services.executor.execution._Execution._give_back", lambda execution, job: None)
    with pytest.raises(Killed):
        table.run_clustering(runner=Meanwhile(end))
    monkeypatch.undo()


def test_what_another_program_runs_is_not_written_to(table: LocalTable) -> None:
    instant = planned(table)
    state = table.state
    state.active.to_inflight(instant)
    with pytest.raises(CommitConflictError, match="another program is running a clustering of this file group"):
        table.upsert(rows({4: 21}))
    assert content(table) == HELD
    table.insert(rows({8: 8}, "c"))
    assert content(table) == {**HELD, 8: 8}


def test_a_second_executor_is_refused(table: LocalTable) -> None:
    instant = planned(table)
    with executor_lock(table.storage, instant.requested_time, 0):
        found = LocalRunner(2).run(lambda _: _refusal(table), [0, 1], name="executors")
    assert all("LockTimeoutError" in one for one in found)
    assert table.run_clustering().state == "completed"


def _refusal(table: LocalTable) -> str:
    other = LocalTable(table.storage, table.options, lock_timeout_ms=100)
    try:
        other.run_clustering()
    except Exception as error:  # noqa: BLE001 - which one it is is what is asked
        return type(error).__name__
    return "nothing"
