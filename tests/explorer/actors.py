"""What actors do, with the engine as it is: each function makes the act of one actor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakehouse_engine.commit.expected import ExpectedState, repeated
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import (
    ChangedSinceReadError,
    ClusteringError,
    CommitOutcomeUnknownError,
    LakehouseError,
    LateAttemptError,
    TimelineRestoredError,
)
from lakehouse_engine.files.vanished import told_of_crossing
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import LOCK_TIMEOUT_MS, WriteOptions
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import evolve_schema
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.crash.scenarios import Row, batch, by_key
from tests.crash.timeline import expect
from tests.explorer.disk import Turned
from tests.explorer.oracle import Effect, Oracle, Rows
from tests.explorer.turns import Turns
from tests.support.local_table import LocalTable
from tests.support.staged_rows import StagedRows
from tests.support.workers import Workers

RECONCILE_SCHEMA = "hoodie.datasource.write.reconcile.schema"
_RETRIES = 12


@dataclass
class Me:
    """An actor: its table, and what it may fail with."""

    name: str
    table: LocalTable
    oracle: Oracle
    turns: Turns
    may_fail: tuple[type[Exception], ...] = ()
    failed: list[Exception] = field(default_factory=list)

    def commit(self, name: str, effect: Effect, call: Callable[[], Any]) -> None:
        """A write that must succeed, but for what this actor may fail with."""
        write = self.oracle.begins(self.name, name, effect)
        try:
            result = call()
        except CommitOutcomeUnknownError:
            raise
        except LakehouseError as error:
            self.oracle.failed(write, error)
            self.give_up(error)
            return
        self.oracle.succeeded(write, result.instant)

    def attempt(self, call: Callable[[], Any]) -> None:
        """An action that changes no rows, or whose effect the disk tells."""
        try:
            call()
        except LakehouseError as error:
            self.give_up(error)

    def give_up(self, error: LakehouseError) -> None:
        self.failed.append(error)
        if not isinstance(error, self.may_fail):
            raise error


Act = Callable[[Me], None]


def changed(*rows: Row) -> Effect:
    return lambda before: {**before, **by_key(*rows)}


def _without(*keys: str) -> Effect:
    return lambda before: {key: row for key, row in before.items() if key not in keys}


def upsert(*rows: Row) -> Act:
    return lambda me: me.commit("upsert", changed(*rows), lambda: me.table.upsert(batch(rows)))


def impatient(act: Act) -> Act:
    """It waits a minute for the lock, in place of ten, whose looks are more calls than a run may make."""

    def waits_less(me: Me) -> None:
        me.table.options[LOCK_TIMEOUT_MS.key] = "60000"
        act(me)

    return waits_less


def upserts(*each: Iterable[Row]) -> Act:
    """One after the other."""

    def act(me: Me) -> None:
        for rows in each:
            upsert(*rows)(me)

    return act


def insert(*rows: Row) -> Act:
    return lambda me: me.commit("insert", changed(*rows), lambda: me.table.insert(batch(rows)))


def delete(*keys: str) -> Act:
    return lambda me: me.commit("delete", _without(*keys), lambda: me.table.delete(pa.table({"id": list(keys)})))


def remove(*rows: Row) -> Act:
    """Rows of a table whose keys are looked up in their partition."""
    keys = pa.table({"id": [row[0] for row in rows], "part": [row[2] for row in rows]})
    return lambda me: me.commit("delete", _without(*(row[0] for row in rows)), lambda: me.table.delete(keys))


def overwrite(*rows: Row) -> Act:
    """Of the partitions that the rows are in."""
    parts = {row[2] for row in rows}

    def effect(before: Rows) -> Rows:
        return {**{key: row for key, row in before.items() if row[1] not in parts}, **by_key(*rows)}

    return lambda me: me.commit("insert overwrite", effect, lambda: me.table.insert_overwrite(batch(rows)))


def _incremented(key: str) -> Effect:
    def effect(before: Rows) -> Rows:
        ts, part, count = before[key]
        return {**before, key: (ts + 1, part, str(int(count) + 1))}

    return effect


def _read(me: Me, **query: Any) -> tuple[TableState, pa.Table]:
    """As `HoodieTable.to_arrow` reads, and the state that was read."""

    def ask(now: TableState) -> tuple[TableState, pa.Table]:
        with told_of_crossing(now):
            return now, me.table.read(state=now, **query)

    return at_one_moment(me.table.state, ask)


def _next(me: Me, key: str) -> tuple[TableState, pa.Table]:
    state, table = _read(me)
    [row] = [row for row in table.to_pylist() if row["id"] == key]
    return state, batch([(key, row["ts"] + 1, row["part"], str(int(row["v"]) + 1))])


def increment_by_state(key: str) -> Act:
    """n = n + 1 as a statement does it: the state that was read is expected, and it is repeated."""

    def act(me: Me) -> None:
        def attempt() -> Any:
            state, rows = _next(me, key)
            return me.table.write(WriteOperationType.UPSERT, rows, expected=ExpectedState.of(state))

        me.commit("n = n + 1", _incremented(key), lambda: repeated(attempt, _RETRIES))

    return act


def increment_by_instant(key: str) -> Act:
    """n = n + 1 as a program does it: by the instant that was read."""

    def attempt(me: Me) -> Any:
        state, rows = _next(me, key)
        return me.table.write(WriteOperationType.UPSERT, rows, expected_instant=me.table.instants(state)[-1])

    def act(me: Me) -> None:
        def call() -> Any:
            for _ in range(_RETRIES):
                try:
                    return attempt(me)
                except ChangedSinceReadError:  # noqa: PERF203 - an attempt is a whole write
                    pass
            return attempt(me)

        me.commit("n = n + 1", _incremented(key), call)

    return act


def _rows(table: pa.Table) -> Rows:
    found = by_key(*((row["id"], row["ts"], row["part"], row["v"]) for row in table.to_pylist()))
    expect(len(found) == table.num_rows, f"a reader finds keys twice: {table.to_pylist()}")
    return found


def reader(times: int = 2) -> Act:
    """The table now, a few times."""

    def act(me: Me) -> None:
        for _ in range(times):
            since = len(me.oracle.states) - 1
            try:
                rows = _rows(_read(me)[1])
            except LakehouseError as error:
                me.give_up(error)
                continue
            me.oracle.check_seen(rows, since, me.name)

    return act


def follower(times: int = 3) -> Act:
    """What changed since the last time, by the newest commit time that was read."""

    def act(me: Me) -> None:
        begin: str | None = None
        before: Rows = {}
        for _ in range(times):
            since = len(me.oracle.states) - 1
            try:
                state, table = _read(me, query="incremental", begin=begin, meta_columns=True)
            except TimelineRestoredError:
                begin, before = None, {}
                continue
            except LakehouseError as error:
                me.give_up(error)
                continue
            me.oracle.check_changes(_rows(table), begin, before, since)
            if table.num_rows:
                last = state.order.newest(table["_hoodie_commit_time"].to_pylist())
                assert last is not None
                begin, before = state.order.moment(last), me.oracle.at[last] if last in me.oracle.at else {**before, **_rows(table)}

    return act


def upsert_staged(*rows: Row) -> Act:
    """As from Spark: the rows are staged. Columns that they lack are filled."""

    def act(me: Me) -> None:
        options = WriteOptions.read({RECONCILE_SCHEMA: "true"})
        request = WriteRequest(WriteOperationType.UPSERT, StagedRows(batch(rows)), options)
        me.commit("upsert", changed(*rows), lambda: execute_write(me.table.storage, request, LocalRunner()))

    return act


def add_column(name: str) -> Act:
    return lambda me: me.attempt(lambda: evolve_schema(me.table.storage, pa.schema([(name, pa.string())]), lock_timeout_ms=60_000))


def upsert_elsewhere(*rows: Row) -> Act:
    """Its worker has a disk of its own."""

    def act(me: Me) -> None:
        storage = me.table.storage
        assert isinstance(storage, Turned)
        me.table.runner = Workers(lambda: storage.disk.copy(storage.root))
        upsert(*rows)(me)

    return act


_TASK = "task"


class _Twice(LocalRunner):
    """Hands the first file task to another attempt, too."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        if tasks and hasattr(tasks[0], "context"):
            self._turns.mail.setdefault(_TASK, (function, tasks[0]))
            self._turns.sleep(1.0)
        return super().run(function, tasks, name=name)


def upsert_twice(*rows: Row) -> Act:
    """With a task that is attempted again by a `late_attempt`."""

    def act(me: Me) -> None:
        me.table.runner = _Twice(me.turns)
        upsert(*rows)(me)

    return act


def late_attempt(of: str) -> Act:
    """Another attempt at a task of that actor, whenever it comes to it."""

    def act(me: Me) -> None:
        while _TASK not in me.turns.mail:
            if me.turns.actors[of].done:
                return
            me.turns.sleep(1.0)
        function, task = me.turns.mail[_TASK]
        try:
            function(replace(task, context=replace(task.context, storage=me.table.storage)))
        except LateAttemptError as error:
            me.failed.append(error)

    return act


def savepoint(name: str = "here") -> Act:
    return lambda me: me.attempt(lambda: me.table.savepoint(name=name))


def savepoint_before(steps: int) -> Act:
    """Of the write so many before the newest one that there was at the beginning."""

    def act(me: Me) -> None:
        instant = sorted(me.oracle.beginning, key=me.oracle.moment)[-1 - steps]
        me.attempt(lambda: me.table.savepoint(instant, "before"))

    return act


def restore(savepoint: str) -> Act:
    return lambda me: me.attempt(lambda: me.table.restore(savepoint))


def rollback() -> Act:
    return lambda me: me.attempt(lambda: me.table.rollback())


def clean(retain: int = 1) -> Act:
    return lambda me: me.attempt(lambda: me.table.clean(retain))


def archive(least: int = 2, most: int = 3) -> Act:
    return lambda me: me.attempt(lambda: me.table.archive(least, most))


def compact() -> Act:
    """Schedule and run."""
    return lambda me: me.attempt(lambda: me.table.compact())


def run_compaction() -> Act:
    return lambda me: me.attempt(lambda: me.table.run_compaction())


def cluster(*order_by: str) -> Act:
    """Schedule and run."""
    return lambda me: me.attempt(lambda: me.table.cluster(*order_by))


def run_clustering() -> Act:
    return lambda me: me.attempt(lambda: me.table.run_clustering())


def until_clustered(*order_by: str, attempts: int) -> Act:
    """Schedule and run, again while writers change all of the plan; once as often as there are writes it must be done."""

    def act(me: Me) -> None:
        for _ in range(attempts):
            try:
                if me.table.cluster(*order_by).state == "completed":
                    return
            except ClusteringError as error:  # noqa: PERF203 - an attempt is a whole clustering
                me.failed.append(error)
        raise AssertionError(f"{attempts} clusterings came to nothing: {me.failed}")

    return act


def rollback_of_plan() -> Act:
    """The oldest plan of a clustering that is pending, if there is one."""

    def act(me: Me) -> None:
        state = me.table.state
        pending = [one.requested_time for one in state.timeline.pending() if one.action is state.format.clustering_action]
        if pending:
            me.attempt(lambda: me.table.rollback(pending[0]))

    return act


def in_turn(*acts: Act) -> Act:
    def act(me: Me) -> None:
        for one in acts:
            one(me)

    return act


Acts = Mapping[str, Act]
