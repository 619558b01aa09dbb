"""What a read-modify-write has read, and whether that is unchanged when the write gets the lock.

The state that was read is a set of writes, not "everything up to an instant": beside other writers an instant can complete after a later
one. Services that keep rows (compaction, clustering) do not count. Archived writes still count as present.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

from lakehouse_engine.errors import ChangedSinceReadError
from lakehouse_engine.model.commit_metadata import WRITER_KEY, HoodieCommitMetadata
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.order import latest
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.write_stats import REWRITES, HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import LOCK_TIMEOUT_MS, STORED_PREFIX
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState

Result = TypeVar("Result")

_LONGEST_PAUSE = 0.05
"""Maximum seconds before the first repetition; random, so that two processes do not collide again."""
_NAMED_PARTITIONS = 5
_BY_CALLER = "Read it again and repeat the write"
_BY_ENGINE = f"{_BY_CALLER}, or let it be repeated more often with hoodie.write.num.retries.on.conflict.failures"


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """Completed writes that a statement has read.

    `instant` is the newest of them, for messages. `partitions` are the paths read; None: any row.
    """

    instant: str | None
    writes: frozenset[str]
    partitions: frozenset[str] | None = None

    @classmethod
    def of(cls, state: TableState) -> ExpectedState:
        """What a read of `state` saw."""
        writes = frozenset(instant.requested_time for instant in state.timeline.completed().writes())
        return cls(state.order.newest(writes), writes)

    def within(self, partitions: Iterable[str]) -> ExpectedState:
        """The same, limited to rows of `partitions`."""
        return replace(self, partitions=frozenset(partitions))

    def after(self, own: Iterable[str]) -> ExpectedState:
        """The same plus the reader's own writes."""
        writes = self.writes.union(own)
        return replace(self, instant=latest(writes) or None, writes=writes)


def check_expected(now: TableState, expected: ExpectedState) -> None:
    """Raise `ChangedSinceReadError` if a write that `expected` lacks has changed what was read, or one that it has is gone.

    `now` is the table under its lock.
    """
    for instant, touched in _unseen(now, expected):
        found = touched.within(expected.partitions)
        if found or not touched.partitions:
            raise _changed(now, expected.instant, instant, found)


@dataclass(frozen=True, slots=True)
class Touched:
    """Partitions in which a commit wrote or replaced files; those from which it may have removed rows; and whether it looked up keys and
    stored some that it did not find.
    """

    partitions: frozenset[str]
    taken_from: frozenset[str]
    adds_unfound: bool

    def within(self, partitions: frozenset[str] | None) -> frozenset[str]:
        """Those of `partitions` (None: all) that were touched."""
        return self.partitions if partitions is None else self.partitions & partitions


@dataclass(frozen=True, slots=True)
class Expectation:
    """Checks that no write after an instant has touched what a write will change. `unseen` are the later writes, with what they touched."""

    state: TableState
    instant: str
    unseen: tuple[tuple[Instant, Touched], ...]

    @classmethod
    def since(cls, now: TableState, instant: str, *, exact: bool) -> Expectation:
        """For the table under its lock. `exact`: `instant` names a write, not a point in time.

        Raises `ChangedSinceReadError` if that write does not exist (any more), or if later ones are already archived.
        """
        completed = frozenset(one.requested_time for one in now.timeline.completed().writes())
        order, moment = now.order, now.order.moment(instant) if exact else instant
        if instant not in completed:
            archived = _archived_writes(now)
            later = {one for one in archived - completed if not order.is_visible(one, moment)}
            _check_known(now, instant, exact and instant not in archived, later)
        expected = ExpectedState(instant, frozenset(one for one in completed if order.is_visible(one, moment)))
        return cls(now, instant, tuple(_unseen(now, expected)))

    def check(self, own: Touched) -> None:
        """Raise `ChangedSinceReadError` if one of the write's `own` partitions was touched.

        A row whose key was not found may be one that the caller read in another partition and moves: a write that removed rows anywhere may
        have removed that one.
        """
        for instant, touched in self.unseen:
            if found := touched.within(own.partitions) or (touched.taken_from if own.adds_unfound else None):
                raise _changed(self.state, self.instant, instant, found, _BY_CALLER)

    def check_untouched(self, partitions: frozenset[str] | None) -> None:
        """For a write that finds nothing to change: raise if one of `partitions` (None: any) was touched."""
        for instant, touched in self.unseen:
            if found := touched.within(partitions):
                raise _changed(self.state, self.instant, instant, found, _BY_CALLER)


def check_rows_found(now: TableState, missing: int, asked: int) -> None:
    """Raise `ChangedSinceReadError` where some of the rows that a write replaces are not stored any more."""
    if missing:
        message = f"{missing} of the {asked} rows to be replaced are not stored any more: they were changed or deleted after they were read"
        raise _refused(now, f"{message}. Nothing was written: read them again and repeat it, or replace those left (missing='ignore')")


def check_generated(now: TableState, wanted: Sequence[Generated], given: Sequence[Generated]) -> None:
    """Raise `ChangedSinceReadError` where the table's generated columns are not those that the rows of a write were `given`."""
    if changed := {*wanted} ^ {*given}:
        names = _listed({one.column for one in changed})
        message = f"the rows to be written were not computed as the table's generated columns are now, which differ in {names}"
        raise _refused(now, f"{message}; nothing was written: write again, and they are computed again")


def _unseen(now: TableState, expected: ExpectedState) -> Iterator[tuple[Instant, Touched]]:
    """Writes of `now` that `expected` lacks, with what each touched; no partition for a change of columns.

    Raises `ChangedSinceReadError` if writes were taken back, or if what came between is already archived.
    """
    completed = {instant.requested_time: instant for instant in now.timeline.completed().writes()}
    _check_all_there(now, expected, completed)
    for instant_time in now.order.sorted(completed.keys() - expected.writes):
        instant = completed[instant_time]
        metadata = now.commit_metadata(instant)
        if not keeps_rows(now.config, instant, metadata):
            yield instant, touched_by(metadata)


def _check_all_there(now: TableState, expected: ExpectedState, completed: Iterable[str]) -> None:
    """Archived writes count as present. A write on neither timeline was taken back, with everything that was read of it."""
    gone = expected.writes - set(completed)
    if not gone:
        return
    archived = _archived_writes(now)
    if gone - archived:
        message = f"the table was read as of {expected.instant}, and since then {_listed(gone - archived)} was taken back"
        raise _refused(now, f"{message}; nothing was written: read it again")
    oldest = now.order.oldest(expected.writes) or ""
    between = {instant for instant in archived - expected.writes if now.order.is_after(instant, oldest)}
    if between:
        message = f"the table was read as of {expected.instant}; {_listed(between)} came since then and was archived"
        raise _refused(now, f"{message}; nothing was written: read it again")


def _check_known(now: TableState, instant: str, missing: bool, later: set[str]) -> None:
    if missing:
        message = f"the table has no commit {instant}: it was taken back, or is none of this table"
        raise _refused(now, f"{message}; nothing was written: read the table again", instant)
    if later:
        message = f"{_listed(later)} came after {instant} and was archived: what it touched is not looked up"
        raise _refused(now, f"{message}; nothing was written: read the table again", instant)


def _archived_writes(now: TableState) -> set[str]:
    archive = now.archived_timeline
    return {one.requested_time for one in archive.readable_instants() if one.is_completed and one.action.is_write}


def keeps_rows(config: TableConfig, instant: Instant, metadata: HoodieCommitMetadata) -> bool:
    """True if a commit only rewrote stored rows. A plain commit of a merge-on-read table is a compaction, whatever it says."""
    if metadata.operation_type is WriteOperationType.ALTER_SCHEMA:
        return False
    compacted = config.table_type is TableType.MERGE_ON_READ and instant.action is Action.COMMIT
    return compacted or metadata.operation_type in REWRITES


def touched_by(metadata: HoodieCommitMetadata) -> Touched:
    """What a commit changed, and where."""
    written = {path: stats for path, stats in metadata.partition_to_write_stats.items() if stats}
    replaced = {path for path, groups in (metadata.partition_to_replace_file_ids or {}).items() if groups}
    taken = {path for path, stats in written.items() if any(map(_may_take_rows, stats))}
    adds = metadata.operation_type is WriteOperationType.UPSERT and any(stat.num_inserts for stat in metadata.write_stats())
    return Touched(frozenset(written.keys() | replaced), frozenset(taken | replaced), adds)


def _may_take_rows(stat: HoodieWriteStat) -> bool:
    """A logged row for a stored key may mark itself as deleted; it counts as an update."""
    return bool(stat.num_deletes or (stat.log_version is not None and stat.num_update_writes))


def _changed(
    now: TableState, read: str | None, instant: Instant, partitions: frozenset[str], remedy: str = _BY_ENGINE
) -> ChangedSinceReadError:
    metadata = now.commit_metadata(instant)
    where = f" in {_listed(path or 'the table' for path in partitions)}" if partitions else ""
    what = "its columns" if metadata.operation_type is WriteOperationType.ALTER_SCHEMA else "rows"
    return _refused(
        now,
        f"{instant.requested_time} ({metadata.operation_type} by {_writer(metadata)}) changed {what}{where} after the table was read as of "
        f"{read or 'its creation'}; nothing was written. {remedy}",
        instant.requested_time,
    )


def _refused(now: TableState, message: str, instant: str | None = None) -> ChangedSinceReadError:
    error = ChangedSinceReadError(message, table=now.config.name, instant=instant)
    timeout = LOCK_TIMEOUT_MS.read(now.config.prefixed(STORED_PREFIX))
    error.table_lock = lambda: TableLock(now.storage, timeout)
    return error


def _writer(metadata: HoodieCommitMetadata) -> str:
    extra = metadata.extra_metadata
    names = (extra.get(key) for key in ("dbt.node", WRITER_KEY))
    return ", ".join(name for name in names if name) or "a writer that does not give its name"


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _NAMED_PARTITIONS} more" if len(found) > _NAMED_PARTITIONS else ""
    return ", ".join(found[:_NAMED_PARTITIONS]) + more


def repeated(attempt: Callable[[], Result], retries: int, again: Callable[[], None] | None = None) -> Result:
    """Result of `attempt`, which reads and writes, repeated up to `retries` times while others change what it reads.

    `again` runs before each repetition. After two conflicts, or in the last repetition, it runs under the table's lock, so that each of
    many competing writers gets its turn. Raises the last attempt's error.
    """
    turn: AbstractContextManager[object] = nullcontext()
    for number in range(retries + 1):
        try:
            with turn:
                if number and again is not None:
                    again()
                return attempt()
        except ChangedSinceReadError as error:  # noqa: PERF203 - one attempt is a whole statement
            if number == retries:
                raise
            if error.table_lock is not None and (number or retries == 1):
                turn = error.table_lock()
            else:
                time.sleep(random.uniform(0, _LONGEST_PAUSE))
    raise AssertionError("the last repetition returns or raises")
