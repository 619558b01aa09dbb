"""A commit whose completed file is gone is told from the write of a process that died, and nothing else is taken for one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pytest

from lakehouse_engine.commit.table_clock import completion_time, table_clock
from lakehouse_engine.errors import CorruptInstantError, InstantCleanedError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieCleanPartitionMetadata
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read.complete_slices import earliest_readable
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.verify import verify
from lakehouse_engine.view.history import history
from lakehouse_engine.view.lost_commits import lost_commits
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import state_path, table_version, version_of_new_tables
from tests.unit.undo.bringing_back import TIMEOUT, copy_of, die

__all__ = ["pytest_generate_tests", "table_version"]
ENDS = (".commit", ".deltacommit", ".replacecommit")


def written(kind: str) -> LocalTable:
    """Writes of every kind, some of them archived, on merge-on-read with compactions and a plan that waits; the last is an upsert."""
    storage = MemoryStorage()
    create(storage, kind)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(6):
        table.upsert(batch([("a", version, "x", f"a{version}"), (f"n{version}", version, "y", "new")]))
    if kind == "mor":
        table.compact()
    table.clean(3)
    table.archive(3, 4, retain=2)
    table.upsert(batch([("b", 1, "x", "b1"), ("c", 1, "z", "c1")]))
    table.insert_overwrite(batch([("d", 1, "z", "d1")]))
    table.delete(pa.table({"id": ["n5"], "part": ["y"]}))
    table.bulk_insert(batch([("e", 1, "w", "e1")]))
    if kind == "mor":
        table.compact()
        table.upsert(batch([("a", 8, "x", "a8"), ("e", 2, "w", "e2")]))
        table.schedule_compaction()
    table.upsert(batch([("a", 9, "x", "a9"), ("e", 3, "w", "e3")]))
    return table


KINDS = ("cow", "mor")


@lru_cache
def _made(kind: str, version: TableVersion) -> dict[str, bytes]:
    """Its files; a test over a bucket leaves no table to the next one."""
    storage = written(kind).storage
    return {entry.path: storage.read(entry.path) for entry in storage.walk()}


def whole_table(kind: str) -> LocalTable:
    storage = MemoryStorage()
    for path, content in _made(kind, version_of_new_tables()).items():
        storage.create(path, content)
    return LocalTable(storage, lock_timeout_ms=TIMEOUT)


def without(table: LocalTable, time: str) -> tuple[LocalTable, str]:
    """A copy that lacks the completed file of a write, and how that is called in messages: with `*` for a completion time."""
    copied = LocalTable(copy_of(table.storage), lock_timeout_ms=TIMEOUT)
    [path] = [path for end in ENDS if copied.storage.head(path := state_path(copied.storage, f"{time}{end}")) is not None]
    copied.storage.delete(path)
    return copied, re.sub(r"_\d+\.", "_*.", path)


def files(table: LocalTable) -> dict[str, bytes]:
    return {entry.path: table.storage.read(entry.path) for entry in table.storage.walk() if ".locks" not in entry.path}


def changes(table: LocalTable) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "upsert", lambda: table.upsert(batch([("q", 1, "q", "q")]))
    yield "clean", lambda: table.clean(1)
    yield "archive", lambda: table.archive(2, 3)
    yield "savepoint", lambda: table.savepoint()
    yield "rollback", lambda: table.rollback()
    yield "restore", lambda: table.restore(to=table.instants()[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_reads_and_changes_refuse_and_name_the_file_and_repair_makes_it_anew_where_that_is_asked_for(kind: str) -> None:
    whole = whole_table(kind)
    times, order = whole.instants(), whole.state.order
    moments = [order.moment(time) for time in times]
    readable = moments[moments.index(earliest_readable(whole.state, "", logs=True) or "") :]
    assert lost_commits(whole.state) == ()
    for before, time in zip(["", *times[:-2]], times[:-1], strict=True):
        table, path = without(whole, time)
        if kind == "mor" and time == times[-3]:
            # A compaction on which nothing rests yet is one that waits to be run again.
            assert_same_rows(table.read(), whole.read())
            continue
        assert [one.requested_time for one in lost_commits(table.state)] == [time]
        for query in ({}, {"as_of": order.moment(time)}, {"as_of": moments[-1]}, {"query": "incremental", "begin": "earliest"}):
            with pytest.raises(CorruptInstantError) as caught:
                table.read(**query)
            assert caught.value.context["path"] == path
        if order.moment(before) in readable:
            # A group that the lost commit began and a later one replaced may have been there before, for all that is known.
            with suppress(InstantCleanedError):
                assert_same_rows(table.read(as_of=order.moment(before)), whole.read(as_of=order.moment(before)))
        content = files(table)
        for name, change in changes(table):
            with pytest.raises(CorruptInstantError, match="is gone"):
                change()
            assert files(table) == content, name
        assert path in {finding.path for finding in verify(table.state).findings}
        assert any("completed file is gone" in (entry.note or "") for entry in history(table.state))
        left = {one.what: one.message for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left}
        assert "repair --trust-files" in left[path]
        if f"`restore --to {before}`" in left[path]:
            restored = LocalTable(copy_of(table.storage), lock_timeout_ms=TIMEOUT)
            restored.restore(to=before)
            assert_same_rows(restored.read(), whole.read(as_of=order.moment(before)))
            assert verify(restored.state).findings == ()
        repair(table.storage, lock_timeout_ms=TIMEOUT, trust_files=True)
        assert verify(table.state).findings == ()
        assert_same_rows(table.read(meta_columns=True), whole.read(meta_columns=True))
        for moment in readable:
            assert_same_rows(table.read(as_of=moment), whole.read(as_of=moment))
        table.upsert(batch([("q", 1, "q", "q")]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_write_without_its_completed_file_is_a_dead_one_unless_a_clean_or_savepoint_came_after_it(kind: str) -> None:
    time = whole_table(kind).instants()[-1]
    assert lost_commits(without(whole_table(kind), time)[0].state) == ()
    saved = LocalTable(copy_of(whole_table(kind).storage), lock_timeout_ms=TIMEOUT)
    saved.savepoint(time)
    assert [one.requested_time for one in lost_commits(without(saved, time)[0].state)] == [time]
    cleaned = LocalTable(copy_of(whole_table(kind).storage), lock_timeout_ms=TIMEOUT)
    if cleaned.clean(1).instant is not None:
        assert [one.requested_time for one in lost_commits(without(cleaned, time)[0].state)] == [time]


def test_a_compaction_that_this_engine_planned_tells_of_the_write_that_it_came_after() -> None:
    time = whole_table("mor").instants()[-1]
    compacted = LocalTable(copy_of(whole_table("mor").storage), lock_timeout_ms=TIMEOUT)
    compacted.run_compaction()
    assert lost_commits(without(compacted, time)[0].state) == (), "its plan is older than the write"
    assert compacted.compact().instant is not None
    assert [one.requested_time for one in lost_commits(without(compacted, time)[0].state)] == [time]


def cleaned_by_hudi(table: LocalTable, paths: Iterable[str]) -> None:
    """A clean that takes these files, whatever waits for them."""
    names = defaultdict[str, list[str]](list)
    for path in paths:
        table.storage.delete(path)
        names[path.rpartition("/")[0]].append(path.rpartition("/")[2])
    made = HoodieCleanPartitionMetadata
    cleaned = {one: made(partition_path=one, policy="", success_delete_files=tuple(of)) for one, of in names.items()}
    found = HoodieCleanMetadata(
        start_clean_time="", time_taken_in_millis=0, total_files_deleted=0, earliest_commit_to_retain="", partition_metadata=cleaned
    )
    state = table.state
    timeline, clean = state.active, Instant(table_clock(state).next(state.timeline), Action.CLEAN, State.REQUESTED)
    timeline.create_requested(clean, b"")
    timeline.complete(timeline.to_inflight(clean), encode_plan(found, sealed=False), completion_time(state, clean))


def test_a_compaction_of_groups_that_were_replaced_and_cleaned_before_it_was_done_is_not_lost() -> None:
    table = LocalTable(MemoryStorage(), lock_timeout_ms=TIMEOUT)
    create(table.storage, "mor")
    for version in range(2):
        table.upsert(batch([("a", version, "x", "a"), ("b", version, "y", "b")]))
    table.schedule_compaction()
    die(table, r"commit$", LocalTable.run_compaction)
    inputs = [file.path for piece in table.state.view.latest_slices() for file in (piece.base_file, *piece.log_files) if file]
    cleaned = LocalTable(copy_of(table.storage), lock_timeout_ms=TIMEOUT)
    cleaned_by_hudi(cleaned, inputs)
    assert [one.action for one in lost_commits(cleaned.state)] == [Action.COMMIT], "nothing replaced them"
    table.insert_overwrite_table(batch([("c", 1, "z", "c")]))
    cleaned_by_hudi(table, inputs)
    assert lost_commits(table.state) == ()
    assert table.read()["id"].to_pylist() == ["c"]


def lost(kind: str) -> tuple[LocalTable, str]:
    time = whole_table(kind).instants()[1]
    return without(whole_table(kind), time)[0], time


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_be_the_remains_of_another_write_is_not_taken_for_a_lost_commit(kind: str) -> None:
    action = "deltacommit" if kind == "mor" else "commit"
    inflight = ".deltacommit.inflight" if kind == "mor" else ".inflight"

    table, time = lost(kind)
    table.storage.create(heartbeat_file(time), b"")
    assert lost_commits(table.state) == (), "its writer has not ended it"

    table, time = lost(kind)
    ConfigStore(table.storage).update({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"})
    assert lost_commits(table.state) == (), "nothing is known of other writers without whole lock settings"
    provider = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ConfigStore(table.storage).update({"hoodie.write.lock.provider": provider})
    assert lost_commits(table.state) == (), "a table that writers of Hudi may be at work on"

    table, time = lost(kind)
    table.storage.delete(state_path(table.storage, f"{time}.{action}.requested"))
    assert lost_commits(table.state) == (), "an inflight file that came late to an object store"

    table, time = lost(kind)
    table.storage.overwrite(state_path(table.storage, f"{time}{inflight}"), b"{}")
    assert lost_commits(table.state) == (), "of another program"


@pytest.mark.parametrize("kind", KINDS)
def test_a_pending_write_of_another_program_is_rolled_back_though_later_commits_are_completed(kind: str) -> None:
    table, time = lost(kind)
    inflight = f"{time}.deltacommit.inflight" if kind == "mor" else f"{time}.inflight"
    table.storage.overwrite(state_path(table.storage, inflight), b"")
    table.upsert(batch([("q", 1, "q", "q")]))
    assert table.state.timeline.find(time) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollback_or_restore_that_dies_in_the_middle_is_finished_and_no_lost_commit(kind: str) -> None:
    for act in (LocalTable.rollback, lambda one: one.restore(to=one.instants()[1])):
        table = LocalTable(copy_of(whole_table(kind).storage), lock_timeout_ms=TIMEOUT)
        table.upsert(batch([("q", 1, "q", "q")]))
        table.clean(1)
        if act is not LocalTable.rollback:
            table = LocalTable(copy_of(whole_table(kind).storage), lock_timeout_ms=TIMEOUT)
        die(table, r"inflight$", act)  # type: ignore[arg-type]
        table.read()
        assert lost_commits(table.state) == ()
        table.upsert(batch([("r", 1, "r", "r")]))
        assert not table.state.timeline.pending().filter(lambda one: one.action in (Action.ROLLBACK, Action.RESTORE)).instants


@pytest.mark.parametrize("kind", KINDS)
def test_an_instant_that_was_archived_while_the_timeline_was_listed_is_no_lost_commit(kind: str) -> None:
    whole = whole_table(kind)
    state = whole.state
    time = state.timeline.completed().writes().instants[1]
    torn = tuple(time.at(State.INFLIGHT) if one == time else one for one in state.timeline.instants)
    seen = replace(state, timeline=Timeline(torn, order=state.order))
    assert lost_commits(seen) == (), "its completed file is there"
    table, _ = without(whole, time.requested_time)
    files_of = [
        f"{table.state.format.timeline_folder}/{table.state.format.file_name(Instant(time.requested_time, time.action, one))}"
        for one in (State.REQUESTED, State.INFLIGHT)
    ]
    gone = table.state
    for path in files_of:
        table.storage.delete(path)
    assert lost_commits(gone) == (), "nothing of it is there when it is looked at again"
