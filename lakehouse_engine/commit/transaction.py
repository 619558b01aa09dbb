"""The single commit path.

A writer holds the table lock from before its instant is requested until it is completed or abandoned, so whatever is pending when
the lock is got belongs to a writer that died, and is rolled back first, or to one of Hudi that is alive, and is left alone where the table
says so (docs/adr/0020). In table versions 8 and 9 a writer may give the lock back once its instant is requested (`Transaction.let_go`):
then its heartbeat and the lock of its instant say that it is alive, and it takes the table lock again to commit (docs/adr/0064).

What may be cleaned up after a failure, and what not: until the completed file is attempted nothing of this instant is visible, so
its files go. If the outcome of that attempt cannot be proven, the commit may be published (`publish`): everything stays and the caller
is told (`CommitOutcomeUnknownError`), unless an object store takes an empty commit in its place (`fence_lost_commit`). The same holds when
the attempt is interrupted (Ctrl-C). Once the commit is published, nothing that fails later makes it a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from lakehouse_engine.commit.concurrency.attempts import open_to_attempts
from lakehouse_engine.commit.concurrency.executors import hold_write_lock, is_wanted_alone
from lakehouse_engine.commit.heartbeat import Beating
from lakehouse_engine.commit.locked import check_nobody_committed, locked_table
from lakehouse_engine.commit.overtaken import OvertakenError, Reach, check_not_overtaken
from lakehouse_engine.commit.publish import Publication, take_back_files
from lakehouse_engine.commit.table_clock import check_skew, table_clock
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    LakehouseError,
    StoredFileExistsError,
    TimelineError,
)
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRequestedReplaceMetadata
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_ATTEMPTS = 10
"""Instant times tried before giving up; another writer took each in the same millisecond."""


class Transaction:
    """One write of a table, under its lock. Made by `begin`. `lock`: what ends when the lock is given back, where it may be."""

    def __init__(self, state: TableState, lock: ExitStack | None = None, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default) -> None:
        self.state = state
        self.is_let_go = False
        self._lock, self._lock_timeout_ms = lock, lock_timeout_ms
        self._at_work = ExitStack()
        self._timeline = state.active
        self._instant: Instant | None = None
        self._heartbeat: Beating | None = None
        self._publication = Publication()

    @property
    def instant_time(self) -> str:
        assert self._instant is not None, "start() comes first"
        return self._instant.requested_time

    @property
    def is_open(self) -> bool:
        """Whether an instant was requested and neither completed nor abandoned."""
        return self._instant is not None and not self._instant.is_completed

    def start(self, action: Action) -> None:
        """Request an instant of a new, strictly increasing time."""
        content = encode_plan(HoodieRequestedReplaceMetadata()) if action is Action.REPLACE_COMMIT else b""
        clock = table_clock(self.state)
        for _ in range(_ATTEMPTS):
            instant = Instant(clock.next(self.state.timeline), action, State.REQUESTED)
            try:
                self._show_alive(instant)
                self._instant = self._timeline.create_requested(instant, content)
                check_skew(self.state, clock, f"{self.state.format.timeline_folder}/{self.state.format.file_name(instant)}")
                return
            except StoredFileExistsError:
                logger.info("instant %s is taken by another writer; trying the next", instant)
        raise TimelineError(
            f"no free instant time in {_ATTEMPTS} tries: too many writers without the table lock", table=self.state.config.name
        )

    def _show_alive(self, instant: Instant) -> None:
        """Written before the instant is requested: other processes take an instant without a heartbeat for a dead writer's."""
        self.rest()
        heartbeat = Beating(self.state.storage, instant.requested_time, lock_options(self.state.config).heartbeat_ms)
        heartbeat.start()
        self._heartbeat = heartbeat

    def rest(self) -> None:
        """End the heartbeat: what is pending from now on is dead."""
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            heartbeat.stop(pending=self.is_open)
        self._at_work.close()

    def let_go(self) -> None:
        """Release the table's lock while files are written, after the instant is requested, if the transaction owns the lock and no process
        waits for the writers' end.

        A process that drops or moves the table meanwhile meets the instant's lock.
        """
        assert self._instant is not None, "start() comes first"
        if self._lock is None or is_wanted_alone(self.state.storage):
            return
        hold_write_lock(self.state.storage, self.instant_time, self._at_work)
        self._lock.close()
        self.is_let_go = True

    def inflight(self, metadata: HoodieCommitMetadata) -> None:
        """Record what is about to be written, and let tasks write it. Raises `OvertakenError` if others took this writer for dead."""
        assert self._instant is not None
        requested = self._instant
        self._instant = self._timeline.to_inflight(requested, self.state.format.encode_commit(metadata))
        open_to_attempts(self.state.storage, self.instant_time)
        if self.is_let_go and not has_file(self.state.storage, self._timeline.path(requested)):
            # A process that takes a write back closes it again once it is not requested any more; its tasks notice that from here on.
            raise OvertakenError("it was taken back by another writer, for whom it was dead", instant=requested)

    def complete(self, metadata: HoodieCommitMetadata) -> None:
        """Publish. Durable on return; files that no write stat names (of retried tasks) are gone.

        Raises `UnseenFileError` if a file in the write stats does not exist for this process as it was written.
        """
        assert self._instant is not None
        assert not self.is_let_go, "without the lock, what the write rests on is to be looked at again"
        check_nobody_committed(self.state)
        self._instant = self._publication.publish(self.state, self._instant, metadata)

    def complete_beside(self, metadata: HoodieCommitMetadata, reach: Reach, also: Callable[[TableState], None]) -> None:
        """As `complete`, under the lock again, which was given back. `also` is asked of the table as it is now, and `state` is that then.

        Raises `OvertakenError` if others changed the table meanwhile so that the commit does not fit it (`reach`: what it rests on), and
        what `also` raises.
        """
        assert self._instant is not None
        with TableLock(self.state.storage, self._lock_timeout_ms):
            now = self.state.advance()
            check_not_overtaken(self.state, now, self._instant, metadata, reach)
            also(now)
            check_nobody_committed(now)
            self._instant = self._publication.publish(now, self._instant, metadata)
            self.state = now

    def abandon(self) -> None:
        """Take everything back: data files by their markers, then the instant's files, then the markers.

        Does nothing once the instant may be published: the next writer finds it committed, or pending and takes it back.
        """
        if not self.is_open or self._publication.may_be_done:
            return
        assert self._instant is not None
        storage, instant = self.state.storage, self._instant
        take_back_files(self.state, instant.requested_time)
        if not self._publication.is_ruled_out:
            self._timeline.delete_pending(instant)
        storage.delete_tree(marker_folder(instant.requested_time))
        self._instant = None


@contextmanager
def begin(
    storage: Storage, *, lock_timeout_ms: int, alone: bool = False, known: TableState | None = None
) -> Iterator[Transaction]:
    """Lock the table and bring it to order; on failure of the body, abandon what it started.

    `alone`: not beside writers of Hudi. `known`: the table as it was before. Raises as `locked_table`.
    """
    alone_ms = lock_timeout_ms if alone else None
    is_nested = TableLock(storage).is_held
    with ExitStack() as lock:
        state = lock.enter_context(
            locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=alone_ms, polite=True, known=known)
        )
        transaction = Transaction(state, None if is_nested else lock, lock_timeout_ms)
        try:
            yield transaction
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            _abandon_after_failure(transaction)
            raise
        finally:
            transaction.rest()


def _abandon_after_failure(transaction: Transaction) -> None:
    try:
        transaction.abandon()
    except LakehouseError as error:
        # The caller must see the original error; the next writer rolls this instant back from its markers.
        logger.warning("could not take back instant %s (%s); the next write does", transaction.instant_time, error)
