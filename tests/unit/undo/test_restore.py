"""Restore: what it refuses before anything changes, what it leaves, and that whoever comes next finishes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import (
    InstantCleanedError,
    InstantNotFoundError,
    LockTimeoutError,
    MissingFileError,
    OptionError,
    RestoreError,
    RollbackError,
    SavepointError,
    TimelineRestoredError,
)
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRestoreMetadata, HoodieRestorePlan
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.undo.restore import restore
from lakehouse_engine.undo.savepoint import create_savepoint, list_savepoints
from lakehouse_engine.verify import verify
from lakehouse_engine.view.protected import protected_files
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.versions import state_path
from tests.unit.undo.bringing_back import KINDS, TIMEOUT, copy_of, data_files, die, history, new_table, rows, sweep
from tests.unit.undo.test_rollback_request import _held_elsewhere


def everything(table: LocalTable) -> dict[str, bytes]:
    return {entry.path: table.storage.read(entry.path) for entry in table.storage.walk() if ".locks" not in entry.path}


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_to_an_instant_leaves_the_table_as_it_was(kind: str) -> None:
    table, instants = history(kind)
    expected = table.read(as_of=instants[0], meta_columns=True)
    would = restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT, dry_run=True)
    files = data_files(table.storage)
    result = restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(meta_columns=True), expected)
    assert result.rolled_back == (instants[2], instants[1])
    assert (result.savepoint, result.savepoints_deleted) == (None, ())
    assert set(result.files_deleted) == files - data_files(table.storage)
    assert result.rows_taken_back == 6
    assert (would.rolled_back, would.files_deleted, would.bytes_deleted, would.rows_taken_back) == (
        result.rolled_back,
        result.files_deleted,
        result.bytes_deleted,
        result.rows_taken_back,
    )
    assert [instant.requested_time for instant in table.state.timeline] == [instants[0], result.instant]


def test_a_dry_run_changes_nothing() -> None:
    table, instants = history("mor")
    before = everything(table)
    assert restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT, dry_run=True).dry_run
    assert everything(table) == before


def test_plan_and_metadata_have_what_hudi_writes() -> None:
    table, instants = history("mor")
    create_savepoint(table.storage, instant=instants[0], lock_timeout_ms=TIMEOUT)
    files = data_files(table.storage)
    result = restore(table.storage, savepoint="latest", lock_timeout_ms=TIMEOUT)
    plan = decode_plan(HoodieRestorePlan, table.storage.read(state_path(table.storage, f"{result.instant}.restore.requested")))
    assert (plan.version, plan.savepoint_to_restore_timestamp) == (2, instants[0])
    assert [(info.commit_time, info.action) for info in plan.instants_to_rollback] == [
        (instants[2], "deltacommit"),
        (instants[1], "deltacommit"),
    ]
    # Hudi leaves this one empty, and reads the requested file: here it is a second copy of the plan.
    assert decode_plan(HoodieRestorePlan, table.storage.read(state_path(table.storage, f"{result.instant}.restore.inflight"))) == plan
    metadata = decode_plan(HoodieRestoreMetadata, table.storage.read(state_path(table.storage, f"{result.instant}.restore")))
    assert metadata.start_restore_time == result.instant
    assert metadata.instants_to_rollback == (instants[2], instants[1])
    assert metadata.restore_instant_info == plan.instants_to_rollback
    assert set(metadata.hoodie_restore_metadata) == {instants[1], instants[2]}
    deleted = set()
    for time, (rolled_back,) in metadata.hoodie_restore_metadata.items():
        assert rolled_back is not None
        assert rolled_back.commits_rollback == (time,)
        assert rolled_back.total_files_deleted == sum(len(part.success_delete_files) for part in rolled_back.partition_metadata.values())
        deleted |= {path for part in rolled_back.partition_metadata.values() for path in part.success_delete_files}
    assert deleted == {f"{table.storage.root}/{path}" for path in files - data_files(table.storage)}


def test_later_savepoints_block_unless_they_are_to_go_too() -> None:
    table, instants = history()
    create_savepoint(table.storage, instant=instants[0], name="old", lock_timeout_ms=TIMEOUT)
    create_savepoint(table.storage, instant=instants[2], name="new", lock_timeout_ms=TIMEOUT)
    before = everything(table)
    with pytest.raises(RestoreError, match=rf"new \({instants[2]}\).*cascade"):
        restore(table.storage, savepoint="old", lock_timeout_ms=TIMEOUT)
    assert everything(table) == before
    result = restore(table.storage, savepoint="old", cascade=True, lock_timeout_ms=TIMEOUT)
    assert result.savepoints_deleted == (instants[2],)
    assert [made.name for made in list_savepoints(table.state)] == ["old"]


def test_what_cannot_be_restored_is_refused_with_the_table_unchanged() -> None:
    table, instants = history()
    create_savepoint(table.storage, instant=instants[2], name="new", lock_timeout_ms=TIMEOUT)
    table.upsert(rows([1], 5))
    table.upsert(rows([2], 6))
    table.clean(1)
    before = everything(table)
    refusals: list[tuple[type[Exception], dict[str, str | None]]] = [
        (SavepointError, {"savepoint": "unknown"}),
        (OptionError, {}),
        (OptionError, {"savepoint": "new", "to": instants[2]}),
        (InstantNotFoundError, {"to": "29990101000000000"}),
    ]
    for error, asked in refusals:
        with pytest.raises(error):
            restore(table.storage, lock_timeout_ms=TIMEOUT, **asked)  # type: ignore[arg-type]
    with pytest.raises(InstantCleanedError):
        restore(table.storage, to=instants[0], cascade=True, lock_timeout_ms=TIMEOUT)
    assert everything(table) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [r"clean\.requested", r"clean\.inflight", r"delete (x|part=)", r"\.clean$"])
def test_a_clean_that_died_is_ended_with_what_it_deleted(kind: str, step: str) -> None:
    """To go on with its plan would take files that are live again; without its record the deleted ones would be called lost."""
    table, _ = history(kind)
    if kind == "mor":
        table.compact()
    target = str(table.upsert(rows([1, 2, 3, 8], 4)).instant)
    if kind == "mor":
        target = str(table.compact().instant)
    expected = table.read(meta_columns=True)
    die(table, step, lambda table: table.clean(1))
    table.upsert(rows([1, 2, 3, 8], 5))
    restore(table.storage, to=target, lock_timeout_ms=TIMEOUT)
    assert not table.state.timeline.pending()
    assert not verify(table.state).findings
    assert not repair(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True).left
    table.upsert(rows([7], 6))
    table.clean(1)
    table.restore(to=target)
    assert_same_rows(table.read(meta_columns=True), expected)


def test_a_lost_file_of_a_savepoint_is_named_before_anything_changes() -> None:
    table, instants = history("mor")
    create_savepoint(table.storage, name="kept", lock_timeout_ms=TIMEOUT)
    lost = min(protected_files(table.state))
    table.upsert(rows([1], 5))
    table.storage.delete(lost)
    before = everything(table)
    with pytest.raises(MissingFileError, match=lost.rpartition("/")[2]):
        restore(table.storage, savepoint="kept", lock_timeout_ms=TIMEOUT)
    assert everything(table) == before
    assert instants


def test_another_writer_at_work_keeps_a_restore_away(tmp_path: Path) -> None:
    table, instants = _on_disk(tmp_path)
    with _held_elsewhere(table, ".hoodie/.locks/table.lock"), pytest.raises(LockTimeoutError):
        restore(table.storage, to=instants[0], lock_timeout_ms=50)


def test_a_running_compaction_keeps_a_restore_away() -> None:
    table, instants = history("mor")
    planned = table.schedule_compaction().instant
    lock = f".hoodie/.locks/compaction-{planned}.lock"
    table.storage.create(lock, b"")
    with _held_elsewhere(table, lock), pytest.raises(RollbackError, match="is running"):
        restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    assert table.state.timeline.find(instants[2]) is not None
    restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    assert table.state.timeline.find(planned) is None


def test_a_table_that_is_there_already_is_left_alone() -> None:
    table, instants = history()
    before = everything(table)
    assert restore(table.storage, to=instants[2], lock_timeout_ms=TIMEOUT).instant is None
    assert everything(table) == before


def test_a_torn_commit_is_taken_back() -> None:
    table, instants = history()
    create_savepoint(table.storage, instant=instants[1], lock_timeout_ms=TIMEOUT)
    expected = table.read(as_of=instants[1])
    table.storage.overwrite(state_path(table.storage, f"{instants[2]}.commit"), b"")
    restore(table.storage, savepoint="latest", lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(), expected)
    table.upsert(rows([1], 9))


def test_logs_without_a_block_that_no_commit_names_any_more_go() -> None:
    table, instants = history("mor")
    (log, *_) = sorted(path for path in data_files(table.storage) if ".log." in path)
    table.storage.overwrite(log, b"")
    restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    assert log not in data_files(table.storage)
    assert verify(table.state).findings == ()


@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_the_target_from_the_plan_on_and_the_next_write_finishes(kind: str) -> None:
    table, instants = history(kind)
    expected = table.read(as_of=instants[0], meta_columns=True)
    die(table, r"\.restore\.inflight", lambda dying: restore(dying.storage, to=instants[0], lock_timeout_ms=TIMEOUT))
    assert_same_rows(table.read(meta_columns=True), expected)
    assert table.storage.head(state_path(table.storage, f"{instants[2]}.{'deltacommit' if kind == 'mor' else 'commit'}")) is not None
    table.upsert(rows([1], 9))
    assert not len(table.state.timeline.pending())
    assert table.state.timeline.find(instants[2]) is None
    assert table.read().num_rows == expected.num_rows


def test_a_restore_to_another_target_finishes_the_first() -> None:
    table, instants = history()
    expected = table.read(as_of=instants[0])
    die(table, r"delete .*\.commit$", lambda dying: restore(dying.storage, to=instants[1], lock_timeout_ms=TIMEOUT))
    restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(), expected)
    restores = [instant for instant in table.state.timeline if instant.action is Action.RESTORE]
    assert [instant.is_completed for instant in restores] == [True, True]


def test_a_torn_plan_of_another_writer_has_not_begun() -> None:
    table, _ = history()
    expected = table.read()
    table.storage.create(state_path(table.storage, "29000101000000000.restore.requested"), b"Obj\x01torn")
    assert_same_rows(table.read(), expected)
    time = table.state.timeline.completed().last()
    assert time is not None
    table.storage.delete(state_path(table.storage, "29000101000000000.restore.requested"))
    torn = state_path(table.storage, f"{int(time.requested_time) + 1}.restore.requested")
    table.storage.create(torn, b"Obj\x01torn")
    table.upsert(rows([1], 9))
    assert table.storage.head(torn) is None


def test_a_plan_that_names_no_target_is_refused() -> None:
    table, _ = history()
    last = table.state.timeline.last()
    assert last is not None
    timeline = ActiveTimeline(table.storage, table.state.format)
    requested = Instant(str(int(last.requested_time) + 1), Action.RESTORE, State.REQUESTED)
    timeline.create_requested(requested, encode_plan(HoodieRestorePlan(version=1)))
    with pytest.raises(RestoreError, match="does not name the instant"):
        table.upsert(rows([1], 9))


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_any_call_is_finished_by_the_next_write(kind: str) -> None:
    table, instants = history(kind)
    if kind == "mor":
        table.compact()
        table.upsert(rows([1, 4], 4))
    create_savepoint(table.storage, instant=instants[2], name="later", lock_timeout_ms=TIMEOUT)

    def act(one: LocalTable) -> None:
        restore(one.storage, to=instants[0], cascade=True, lock_timeout_ms=TIMEOUT)

    def then(one: LocalTable) -> None:
        one.upsert(rows([1], 9))

    assert sweep(f"a restore, {kind}", table, act, then) > 100


@pytest.mark.table_versions(6)
def test_between_two_savepoints_archived_commits_stay_part_of_the_table(tmp_path: Path) -> None:
    """Of the writes left only savepointed ones are on the timeline, with archived ones between them."""
    table, _ = _on_disk(tmp_path)
    table.savepoint(None, "first")
    for seed in range(5, 10):
        table.bulk_insert(rows([100 + seed], seed))
    table.savepoint(None, "second")
    expected = table.read(meta_columns=True)
    for seed in range(10, 16):
        table.upsert(rows([1, 100 + seed], seed))
    assert len(table.archive(2, 3).archived) >= 7
    result = restore(table.storage, savepoint="second", lock_timeout_ms=TIMEOUT)
    assert len(result.rolled_back) == 6, "archived instants are among those taken back"
    assert_same_rows(table.read(meta_columns=True), expected)
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), expected)
    assert restore(table.storage, savepoint="second", lock_timeout_ms=TIMEOUT).instant is None
    table.upsert(rows([1, 500], 50))
    assert table.read().num_rows == expected.num_rows + 1
    restore(table.storage, savepoint="first", cascade=True, lock_timeout_ms=TIMEOUT)
    assert table.read().num_rows == expected.num_rows - 5


def _on_disk(tmp_path: Path) -> tuple[LocalTable, list[str]]:
    table = new_table(storage=LocalStorage(str(tmp_path / "t")))
    results = [table.insert(rows(range(6), 1)), table.upsert(rows([1, 2, 7], 2))]
    return table, [str(result.instant) for result in results]


def test_cost_follows_files_and_not_commits() -> None:
    """The same files of one and of many commits take about as many looks at the storage."""
    calls = []
    for commits in (2, 12):
        table = new_table()
        first = table.insert(rows(range(2), 1)).instant
        for number in range(commits):
            table.bulk_insert(rows(range(10 + number * 12 // commits, 10 + (number + 1) * 12 // commits), 2))
        counted = _Counting(copy_of(table.storage))
        restore(counted, to=first, lock_timeout_ms=TIMEOUT)
        calls.append(counted.reads)
    assert calls[1] <= calls[0] + 2 * 10 + 10


class _Counting:
    """Counts listings and readings."""

    def __init__(self, inner: object) -> None:
        self._inner, self.reads = inner, 0

    def __getattr__(self, name: str) -> object:
        if name in ("list", "walk", "read", "head"):
            self.reads += 1
        return getattr(self._inner, name)


# incremental readers


def test_a_reader_behind_a_restore_is_told_and_may_choose() -> None:
    table, instants = history()
    first, second, last = (table.state.order.moment(time) for time in instants)
    target_rows = table.read(as_of=first)
    result = restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    with pytest.raises(TimelineRestoredError, match=f"restored to {instants[0]}") as caught:
        table.read(query="incremental", begin=second)
    assert caught.value.context["restore"] == result.instant
    assert caught.value.context["target"] == instants[0]
    assert caught.value.context["rolled_back"].split(",") == [instants[2], instants[1]]
    new = table.upsert(rows([50], 9)).instant
    with pytest.raises(TimelineRestoredError):
        table.read(query="incremental", begin=last)
    assert table.read(query="incremental", begin=last, on_restore="rewind")["id"].to_pylist() == [50]
    assert table.read(query="incremental", begin=last, on_restore="resync").num_rows == target_rows.num_rows + 1
    assert table.read(query="incremental", begin=first)["id"].to_pylist() == [50]
    assert table.read(query="incremental", begin=table.state.order.moment(str(result.instant)))["id"].to_pylist() == [50]
    assert table.read(query="incremental", begin=table.state.order.moment(str(new))).num_rows == 0
    assert table.read(query="incremental", begin="earliest").num_rows == target_rows.num_rows + 1
    with pytest.raises(OptionError, match="on_restore='again'"):
        table.read(query="incremental", begin=last, on_restore="again")


def test_a_reader_behind_two_restores_rewinds_to_the_older_target() -> None:
    table, instants = history()
    _, second, last = (table.state.order.moment(time) for time in instants)
    restore(table.storage, to=instants[1], lock_timeout_ms=TIMEOUT)
    again = table.state.order.moment(str(table.upsert(rows([60], 9)).instant))
    restore(table.storage, to=instants[0], lock_timeout_ms=TIMEOUT)
    table.upsert(rows([70], 9))
    for begin in (last, again, second):
        assert table.read(query="incremental", begin=begin, on_restore="rewind")["id"].to_pylist() == [70]


def test_a_reader_is_told_of_a_restore_that_is_not_finished() -> None:
    table, instants = history()
    read = table.state.order.moment(instants[1])
    die(table, r"\.restore\.inflight", lambda dying: restore(dying.storage, to=instants[0], lock_timeout_ms=TIMEOUT))
    with pytest.raises(TimelineRestoredError):
        table.read(query="incremental", begin=read)
