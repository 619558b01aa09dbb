"""Whatever service stands on the executor: how its plan is made, run, published and taken back. A clustering is the example."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine.commit.concurrency.executors import executor_lock, lock_file
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LockTimeoutError, RollbackError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.services.executor.execution import Done, run
from lakehouse_engine.services.executor.scheduling import choose, request, schedule
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.verify import verify
from tests.support.local_table import LocalTable
from tests.unit.services.executor.clustering import ROWS, Clustering, ClusteringError, SortTask, batch, rows, two_files

SERVICE = Clustering()


@pytest.fixture
def table() -> LocalTable:
    return two_files(MemoryStorage())


def groups(table: LocalTable) -> set[str]:
    return {one.file_id for one in table.state.view.latest_slices()}


def files(table: LocalTable) -> set[str]:
    return {entry.path for entry in table.storage.walk("") if ".locks" not in entry.path}


def planned(table: LocalTable) -> Instant:
    scheduled = schedule(SERVICE, table.storage, lock_timeout_ms=1000, alone_ms=1000)
    assert scheduled is not None
    return scheduled[0]


class Meanwhile(LocalRunner):
    """Something happens when all tasks are done."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def run(self, function: Any, tasks: Sequence[Any], *, name: str) -> list[Any]:
        made = super().run(function, tasks, name=name)
        self.act()
        return made


class Broken(RuntimeError):
    """What a test makes go wrong."""


def fail() -> None:
    raise Broken


def run_now(table: LocalTable, instant: Instant, act: Callable[[], object] = lambda: None, **more: Any) -> Done[Any, SortTask] | None:
    arguments: dict[str, Any] = {"lock_timeout_ms": 1000, "wait": True, **more}
    return run(SERVICE, table.state, instant, Meanwhile(act), **arguments)


def test_new_groups_take_the_place_of_the_old_ones(table: LocalTable) -> None:
    before = groups(table)
    instant = planned(table)
    assert list(table.state.timeline.pending()) == [instant]
    done = run_now(table, instant)
    assert done is not None
    assert (len(done.job.tasks), done.metadata.operation_type) == (2, "CLUSTER")
    assert table.state.timeline.find(instant.requested_time) == instant.at(State.COMPLETED)
    assert groups(table) == {"sorted-0-0", "sorted-1-0"}
    assert not groups(table) & before
    assert rows(table) == ROWS
    assert verify(table.state).ok
    assert not table.storage.walk(f".hoodie/.temp/{instant.requested_time}")
    assert table.storage.head(lock_file(instant.requested_time)) is None


def test_another_executor_has_done_it(table: LocalTable) -> None:
    instant, state = planned(table), table.state
    run_now(table, instant)
    before = files(table)
    assert run(SERVICE, state, instant, LocalRunner(), lock_timeout_ms=1000, wait=True) is None
    assert files(table) == before


def test_a_failed_run_takes_the_table_back_to_the_plan(table: LocalTable) -> None:
    instant = planned(table)
    before = files(table)
    with pytest.raises(Broken):
        run_now(table, instant, fail)
    assert files(table) == before
    assert run_now(table, instant) is not None
    assert rows(table) == ROWS


def test_a_dead_run_is_left_to_the_next_one(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = planned(table)
    monkeypatch.setattr("lakehouse_engine.services.executor.execution._Execution._give_back", lambda execution, job: None)
    with pytest.raises(Broken):
        run_now(table, instant, fail)
    left = {path for path in files(table) if "sorted-" in path and path.endswith(".parquet")}
    assert len(left) == 2
    table.insert(batch(5))
    assert left <= files(table)
    assert rows(table) == {**ROWS, 5: 0}
    assert run_now(table, instant) is not None
    assert not left & files(table)
    assert rows(table) == {**ROWS, 5: 0}
    assert verify(table.state).ok


def test_writers_go_on_and_the_one_that_changes_what_is_clustered_is_noticed(table: LocalTable) -> None:
    """A program without the table lock replaces a file."""
    instant = planned(table)
    run_now(table, instant, lambda: table.insert(batch(5)))
    assert rows(table) == {**ROWS, 5: 0}
    again = planned(table)
    before = groups(table)

    def replace() -> None:
        state = table.state
        ActiveTimeline(state.storage, state.format).delete_pending(again)

    with pytest.raises(ClusteringError, match="was changed while it was clustered"):
        run_now(table, again, replace)
    assert groups(table) == before


def test_a_second_executor_is_refused(table: LocalTable) -> None:
    instant = planned(table)
    with executor_lock(table.storage, instant.requested_time, 0):
        refused = LocalRunner(2).run(lambda _: _refusal(table, instant), [0, 1], name="executors")
    assert all(isinstance(error, LockTimeoutError) for error in refused)
    assert run_now(table, instant) is not None


def _refusal(table: LocalTable, instant: Instant) -> BaseException | None:
    try:
        run_now(table, instant, wait=False)
    except LockTimeoutError as error:
        return error
    return None


def test_what_another_program_began_is_left_alone(table: LocalTable) -> None:
    instant = planned(table)
    state = table.state
    ActiveTimeline(state.storage, state.format).to_inflight(instant)
    with pytest.raises(ClusteringError, match=r"began this clustering .* taken over after clustering\.timeout=1200"):
        run_now(table, instant.at(State.INFLIGHT))


def test_a_running_plan_is_not_taken_back(tmp_path: Path) -> None:
    table = two_files(LocalStorage(str(tmp_path)))
    instant = planned(table)
    with pytest.raises(RollbackError, match="is running, and would be taken back"):
        run_now(table, instant, lambda: LocalRunner(2).run(lambda _: table.rollback(), [0, 1], name="others"))
    table.rollback(instant.requested_time)
    assert list(table.state.timeline.pending()) == []


def test_archiving_keeps_the_lock_of_a_pending_plan(table: LocalTable) -> None:
    instant = planned(table)
    table.storage.create(lock_file(instant.requested_time), b"")
    table.archive(2, 3)
    assert table.storage.head(lock_file(instant.requested_time)) is not None


def test_a_plan_waits_for_the_writes_that_are_going_on(table: LocalTable) -> None:
    state = table.state
    plan = SERVICE.plan(state)
    newest = str(int(max(table.instants())) + 1)
    ActiveTimeline(state.storage, state.format).create_requested(Instant(newest, Action.COMMIT, State.REQUESTED))
    with pytest.raises(ClusteringError, match="a clustering cannot be scheduled while a write is going on"):
        request(SERVICE.kind, table.state, plan)


def test_plans_are_chosen_by_their_instants(table: LocalTable) -> None:
    assert choose(SERVICE.kind, table.state, None) is None
    with pytest.raises(ClusteringError, match="20260101000000000 is no pending replacecommit of this table; pending: none"):
        choose(SERVICE.kind, table.state, "20260101000000000")
    instant = planned(table)
    assert choose(SERVICE.kind, table.state, None) == choose(SERVICE.kind, table.state, instant.requested_time) == instant
    with pytest.raises(ClusteringError, match=re.escape(f"pending: {instant.requested_time}")):
        choose(SERVICE.kind, table.state, "20260101000000000")


def test_an_overwrite_that_is_pending_is_no_plan(table: LocalTable) -> None:
    state = table.state
    time = str(int(max(table.instants())) + 1)
    ActiveTimeline(state.storage, state.format).create_requested(Instant(time, Action.REPLACE_COMMIT, State.REQUESTED))
    assert choose(SERVICE.kind, table.state, None) is None
