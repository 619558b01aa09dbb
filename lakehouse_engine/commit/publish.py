"""The only place where a write with files is completed: writes, compactions and log compactions.

 1. the instant is closed to task attempts; files that no write stat names are deleted, and late ones of earlier writes too
 2. every file in the write stats is looked up: a file that this process cannot see is not published
 3. participants of the table follow (`participants`)
 4. the completed file is created, which is the commit, not before its beginning by the store's clock; then participants finish, and the
    markers are deleted

Until step 4 nothing is visible, and the caller may take everything back. If the outcome of step 4 cannot be proven, or it is interrupted,
the commit may be published, and deleting its files would delete acknowledged rows (`Publication.may_be_done`). If the lock was lost
meanwhile, the completed file is removed, and everything else is left to the lock's new holder. A commit that an object store does not
answer is ruled out first (`fence_lost_commit`).
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.commit.concurrency.completion import await_store
from lakehouse_engine.commit.concurrency.promised import forget_promise
from lakehouse_engine.commit.deletion import clear_strays, delete_files_of
from lakehouse_engine.commit.fence_lost_commit import can_be_ruled_out, is_run_again, rule_out
from lakehouse_engine.commit.outcome import new_write_id
from lakehouse_engine.commit.participants import finish_all, follow_all, take_back_all
from lakehouse_engine.commit.rollback.markers import marked_files
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.engine import LocalRunner, looking_runner
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    CommitRuledOutError,
    LakehouseError,
    LockLostError,
    StorageError,
    UnseenFileError,
)
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.commit_metadata import WRITE_ID_KEY, WRITER_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_FEW = 3
"""Up to this number, files of a partition are looked up one by one; more by listing it, which is one call."""
_THREADS = 8
_WORTH_THREADS = 64
_MOST_LOGS = 32
"""Number of log files without a commit (failed writes of other programs leave some) that a write looks into."""


@dataclass(slots=True)
class Publication:
    """One attempt to complete a write. `may_be_done`: the completed file may exist, so nothing may be cleaned up any more.

    `is_ruled_out`: an empty commit has its name, and stays.
    """

    may_be_done: bool = False
    is_ruled_out: bool = False

    def publish(self, state: TableState, inflight: Instant, metadata: HoodieCommitMetadata) -> Instant:
        """Complete the instant; durable on return. The table lock is held.

        Raises `UnseenFileError` if a file does not exist as it was written, `CommitRuledOutError` if an object store did not answer and the
        commit was ruled out, and what `ActiveTimeline.complete` raises.
        """
        storage, time = state.storage, inflight.requested_time
        metadata = _signed(metadata)
        content = state.format.encode_commit(metadata)
        close_to_attempts(storage, time)
        run_again = is_run_again(storage, inflight)
        if not run_again:
            _remove_unnamed(storage, time, metadata)
        # Strays of earlier writes in the partitions that this one has listed.
        clear_strays(state, state.view.seen, most_logs=_MOST_LOGS)
        written_ms = check_seen(state, time, metadata)
        await_store(state, time, metadata, written_ms)
        follow_all(state, inflight, metadata)
        completed = self._complete(state, inflight, content)
        finish_all(state, completed)
        try:
            if run_again:
                # Until now an earlier run could still have been completed, with other files (`fence_lost_commit`).
                _remove_unnamed(storage, time, metadata)
            storage.delete_tree(marker_folder(time))
            if state.format.completes_with_time:
                forget_promise(storage, time)
        except StorageError as error:
            logger.warning("%s is completed, but its markers could not be removed (%s); the next write does", completed, error)
        return completed

    def _complete(self, state: TableState, inflight: Instant, content: bytes) -> Instant:
        """Without an answer of the timeline the outcome stays open."""
        completed_at = completion_time(state, inflight)
        self.may_be_done = True
        try:
            return state.active.complete(inflight, content, completed_at)
        except CommitOutcomeUnknownError as error:
            return self._settle(state, inflight, content, completed_at, error)
        except LockLostError:
            raise
        except LakehouseError:
            self.may_be_done = False
            raise

    def _settle(
        self, state: TableState, inflight: Instant, content: bytes, completed_at: str | None, error: CommitOutcomeUnknownError
    ) -> Instant:
        """The commit, if it arrived without an answer; otherwise it is ruled out, or stays unknown (`error`)."""
        if not can_be_ruled_out(inflight, error):
            raise error
        try:
            is_ruled_out = rule_out(state, inflight, completed_at)
            if not is_ruled_out:
                return state.active.complete(inflight, content, completed_at)
        except LakehouseError:
            raise error from error.__cause__
        self.may_be_done, self.is_ruled_out = False, True
        raise CommitRuledOutError(
            f"the store did not answer the commit of {inflight}, and it is ruled out that it comes late: an empty commit is in its place."
            " The table has the rows that it had; try again",
            instant=inflight,
            table=state.config.name,
        ) from error


def _signed(metadata: HoodieCommitMetadata) -> HoodieCommitMetadata:
    """Metadata with the writer and a new id, which distinguishes it from anything put in its place."""
    signature = {WRITER_KEY: f"process {os.getpid()} on {socket.gethostname()}", WRITE_ID_KEY: new_write_id()}
    extra = {**signature, **metadata.extra_metadata}
    return replace(metadata, extra_metadata=extra)


def take_back_files(state: TableState, instant_time: str) -> None:
    """Close an unpublished instant to task attempts, let participants remove it, and delete the files that its markers name. Idempotent."""
    storage = state.storage
    close_to_attempts(storage, instant_time)
    take_back_all(state, [instant_time])
    delete_files_of(storage, instant_time, marked_files(storage, instant_time))


def _remove_unnamed(storage: Storage, instant_time: str, metadata: HoodieCommitMetadata) -> None:
    """Delete files of repeated attempts."""
    written = {stat.path for stat in metadata.write_stats()}
    delete_files_of(storage, instant_time, [path for path in marked_files(storage, instant_time) if path not in written])


def check_seen(state: TableState, instant_time: str, metadata: HoodieCommitMetadata) -> int:
    """Creation time of the newest file in the write stats, in milliseconds by the storage's clock; 0 without files.

    Raises `UnseenFileError` unless each exists in the size that its task wrote.
    """
    by_partition: dict[str, list[HoodieWriteStat]] = {}
    for stat in metadata.write_stats():
        by_partition.setdefault(parent_of(stat.path or ""), []).append(stat)
    threads = _THREADS if len(by_partition) >= _WORTH_THREADS else 1
    runner = looking_runner(LocalRunner(threads, waiting=_THREADS), state.storage)
    found = runner.run(lambda part: list(_looked_up(state.storage, *part)), list(by_partition.items()), name="look for files")
    newest_ms = 0
    for stat, there in chain.from_iterable(found):
        if there is not None and not there.is_directory and there.size == stat.file_size_in_bytes:
            newest_ms = max(newest_ms, there.modified_ms)
            continue
        what = "is not there" if there is None else f"has {there.size} bytes there"
        raise UnseenFileError(
            f"a task wrote {stat.file_size_in_bytes} bytes to {stat.path!r}, which {what} for the process that commits: the executors'"
            " directory must be the driver's (mount it under the same path on every worker); nothing was committed",
            table=state.config.name,
            instant=instant_time,
            path=stat.path,
            expected=stat.file_size_in_bytes,
            found=None if there is None else there.size,
        )
    return newest_ms


def _looked_up(storage: Storage, partition: str, stats: Sequence[HoodieWriteStat]) -> Iterator[tuple[HoodieWriteStat, StoredFile | None]]:
    listed = None if len(stats) <= _FEW else {entry.path: entry for entry in storage.list(partition) if not entry.is_directory}
    for stat in stats:
        path = stat.path or ""
        yield stat, (storage.head(path) if path else None) if listed is None else listed.get(path)
