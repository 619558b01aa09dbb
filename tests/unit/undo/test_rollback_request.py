"""Rollback on request: newest first, nothing that a savepoint keeps, and a crash at any call is picked up."""

from __future__ import annotations

import threading

import pytest

from lakehouse_engine.errors import InstantCleanedError, InstantNotFoundError, RollbackError
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.seal import SEAL_KEY
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.plans import HoodieRollbackMetadata
from lakehouse_engine.options.services import CleanOptions
from lakehouse_engine.services.clean import clean
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.undo.rollback import rollback
from lakehouse_engine.undo.savepoint import create_savepoint
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import state_path
from tests.unit.undo.bringing_back import KINDS, TIMEOUT, data_files, die, history, new_table, rows, sweep


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_write_is_taken_back_with_its_files(kind: str) -> None:
    table, instants = history(kind)
    expected, files = table.read(as_of=instants[1], meta_columns=True), data_files(table.storage)
    result = rollback(table.storage, lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(meta_columns=True), expected)
    assert result.rolled_back == instants[2]
    assert set(result.files_deleted) == files - data_files(table.storage)
    assert result.bytes_deleted > 0
    assert result.rows_taken_back == 3
    assert result.rollback_blocks == ()
    state = table.state
    assert state.timeline.find(instants[2]) is None
    last = state.timeline.completed().last()
    assert last is not None
    assert (last.action, last.requested_time) == (Action.ROLLBACK, result.instant)
    metadata = decode_plan(HoodieRollbackMetadata, table.storage.read(state_path(table.storage, f"{last.requested_time}.rollback")))
    assert metadata.commits_rollback == (instants[2],)
    assert metadata.total_files_deleted == len(result.files_deleted)


@pytest.mark.parametrize("kind", KINDS)
def test_all_writes_can_be_taken_back_one_by_one(kind: str) -> None:
    table, instants = history(kind)
    for instant in reversed(instants):
        rollback(table.storage, instant=instant, lock_timeout_ms=TIMEOUT)
    assert table.read().num_rows == 0
    assert data_files(table.storage) == set()
    with pytest.raises(RollbackError, match="no completed write"):
        rollback(table.storage, lock_timeout_ms=TIMEOUT)
    table.insert(rows(range(3), 9))
    assert table.read().num_rows == 3


def test_an_older_write_is_refused_naming_the_newer_ones() -> None:
    table, instants = history()
    with pytest.raises(RollbackError, match=f"{instants[2]}, {instants[1]}.*restore"):
        rollback(table.storage, instant=instants[0], lock_timeout_ms=TIMEOUT)
    with pytest.raises(InstantNotFoundError, match="20200101000000000"):
        rollback(table.storage, instant="20200101000000000", lock_timeout_ms=TIMEOUT)


def test_a_savepointed_write_is_refused_naming_the_savepoint() -> None:
    table, instants = history()
    create_savepoint(table.storage, name="nightly", lock_timeout_ms=TIMEOUT)
    with pytest.raises(RollbackError, match=f"savepoint 'nightly' of {instants[2]}"):
        rollback(table.storage, lock_timeout_ms=TIMEOUT)
    assert table.state.timeline.find(instants[2]) is not None


def test_a_write_on_which_a_clean_relied_is_refused() -> None:
    table, _ = history()
    versions = CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions_retained=1)
    assert clean(table.storage, versions, lock_timeout_ms=TIMEOUT).files_deleted
    before = table.read()
    with pytest.raises(InstantCleanedError, match="a clean relied on this write"):
        rollback(table.storage, lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(), before)


@pytest.mark.table_versions(6)
def test_the_oldest_write_that_is_not_archived_is_refused() -> None:
    table, _ = history()
    for seed in range(4, 8):
        table.upsert(rows([1], seed))
    assert table.archive(2, 2).archived
    rollback(table.storage, lock_timeout_ms=TIMEOUT)
    with pytest.raises(RollbackError, match="archived"):
        rollback(table.storage, lock_timeout_ms=TIMEOUT)


def test_a_second_request_for_the_same_instant_is_answered_with_the_first() -> None:
    table, instants = history()
    first = rollback(table.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
    second = rollback(table.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
    assert (second.instant, second.files_deleted) == (first.instant, first.files_deleted)
    assert table.state.timeline.find(instants[1]) is not None


def test_a_dry_run_changes_nothing() -> None:
    table, instants = history("mor")
    before = {entry.path for entry in table.storage.walk()}
    result = rollback(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True)
    assert (result.instant, result.rolled_back, result.dry_run) == (None, instants[2], True)
    assert len(result.files_deleted) == 3
    assert {entry.path for entry in table.storage.walk()} == before


def test_a_completed_compaction_without_later_logs_is_taken_back() -> None:
    table, _ = history("mor")
    expected, files = table.read(), data_files(table.storage)
    table.compact()
    result = rollback(table.storage, lock_timeout_ms=TIMEOUT)
    assert result.rows_taken_back == 0
    assert data_files(table.storage) == files
    assert_same_rows(table.read(), expected)
    table.compact()
    assert_same_rows(table.read(), expected)


def test_a_compaction_with_logs_on_it_is_refused_planned_or_completed() -> None:
    table, _ = history("mor")
    planned = table.schedule_compaction().instant
    table.upsert(rows([1, 2], 5))
    expected = table.read()
    with pytest.raises(RollbackError, match="newer writes exist"):
        rollback(table.storage, instant=planned, lock_timeout_ms=TIMEOUT)
    table.run_compaction()
    with pytest.raises(RollbackError, match="newer writes exist"):
        rollback(table.storage, instant=planned, lock_timeout_ms=TIMEOUT)
    assert_same_rows(table.read(), expected)


def test_a_planned_compaction_goes_before_the_write_that_it_is_about() -> None:
    table, instants = history("mor")
    expected = table.read(as_of=instants[1])
    planned = table.schedule_compaction().instant
    rollback(table.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
    assert table.state.timeline.find(planned) is None
    assert_same_rows(table.read(), expected)
    table.compact()
    assert_same_rows(table.read(), expected)


def test_a_running_compaction_is_not_taken_back() -> None:
    table, instants = history("mor")
    planned = table.schedule_compaction().instant
    lock = f".hoodie/.locks/compaction-{planned}.lock"
    table.storage.create(lock, b"")
    with _held_elsewhere(table, lock), pytest.raises(RollbackError, match="is running"):
        rollback(table.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
    assert table.state.timeline.find(planned) is not None


class _held_elsewhere:  # noqa: N801 - used as a function
    """A lock of another thread."""

    def __init__(self, table: LocalTable, file: str) -> None:
        self._lock, self._held, self._done = TableLock(table.storage, TIMEOUT, file=file), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self._lock:
            self._held.set()
            self._done.wait(10)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._held.wait(10)

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.table_versions(6)
def test_a_log_file_with_blocks_of_others_gets_a_rollback_block() -> None:
    """As storages leave them that append: the blocks of two delta commits in one file."""
    table, instants = history("mor")
    expected = table.read(as_of=instants[1])
    first, second = _joined(table)
    result = rollback(table.storage, lock_timeout_ms=TIMEOUT)
    (block_file,) = result.rollback_blocks
    assert block_file.endswith("_1-0-1")
    assert first not in result.files_deleted
    (block,) = read_blocks(table.storage.read(block_file))
    assert (block.type, block.target_instant_time, block.instant_time) == (BlockType.COMMAND, instants[2], result.instant)
    assert_same_rows(table.read(), expected)
    metadata = decode_plan(HoodieRollbackMetadata, table.storage.read(state_path(table.storage, f"{result.instant}.rollback")))
    part = metadata.partition_metadata[block_file.rpartition("/")[0]]
    assert part.rollback_log_files == {f"{table.storage.root}/{block_file}": block.length}
    assert table.storage.head(second) is None
    table.upsert(rows([2], 9))
    assert table.read().num_rows == expected.num_rows


def _joined(table: LocalTable) -> tuple[str, str]:
    """Put the second log of a slice behind the first, in the first's file, as the second commit's stat then says."""
    first = next(path for path in sorted(data_files(table.storage)) if ".log.1_" in path and _second(table, path))
    second = _second(table, first)
    assert second is not None
    before, added = table.storage.read(first), table.storage.read(second)
    table.storage.delete(second)
    table.storage.overwrite(first, before + added)
    last = table.state.timeline.completed().writes().last()
    assert last is not None
    commit = state_path(table.storage, f"{last.requested_time}.deltacommit")
    text = table.storage.read(commit).decode().replace(SEAL_KEY, "its.seal")  # as a writer that seals nothing
    replaced = text.replace(second.rpartition("/")[2], first.rpartition("/")[2])
    at = replaced.index(first.rpartition("/")[2])
    assert at >= 0
    replaced = replaced.replace('"logOffset" : 0', f'"logOffset" : {len(before)}').replace(
        f'"fileSizeInBytes" : {len(added)}', f'"fileSizeInBytes" : {len(before) + len(added)}'
    )
    table.storage.overwrite(commit, replaced.encode())
    return first, second


def _second(table: LocalTable, first: str) -> str | None:
    prefix = first.partition(".log.1_")[0] + ".log.2_"
    return next((path for path in data_files(table.storage) if path.startswith(prefix)), None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_write_is_taken_back_by_its_markers_or_by_listing(kind: str) -> None:
    for markers in (True, False):
        table, _ = history(kind)
        expected, files = table.read(), data_files(table.storage)
        die(table, r"\.(delta)?commit$", lambda dying: dying.upsert(rows([1, 2, 30], 7)))
        assert data_files(table.storage) > files
        if not markers:
            table.storage.delete_tree(".hoodie/.temp")
        table.upsert(rows([1], 1))
        assert table.read().num_rows == expected.num_rows
        new = table.state.commit_metadata(table.state.timeline.completed().writes().instants[-1])
        assert data_files(table.storage) <= files | {str(stat.path) for stat in new.write_stats()}


def test_asked_by_name_for_a_dead_write_the_answer_is_what_recovery_did() -> None:
    table, instants = history("mor")
    die(table, r"\.deltacommit$", lambda dying: dying.upsert(rows([1, 2, 30], 7)))
    dead = table.state.timeline.pending().last()
    assert dead is not None
    result = rollback(table.storage, instant=dead.requested_time, lock_timeout_ms=TIMEOUT)
    assert result.rolled_back == dead.requested_time
    assert result.files_deleted
    assert table.state.timeline.find(instants[2]) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_any_call_is_picked_up_by_the_next_write(kind: str) -> None:
    table, instants = history(kind)

    def act(one: LocalTable) -> None:
        rollback(one.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)

    assert sweep(f"a rollback, {kind}", table, act, lambda one: one.upsert(rows([1], 9))) > 50


def test_an_empty_table_has_nothing_to_roll_back() -> None:
    with pytest.raises(RollbackError, match="no completed write"):
        rollback(new_table().storage, lock_timeout_ms=TIMEOUT)
