"""Decides if a write that made its files without the lock may be committed as it is (docs/adr/0064).

Others may have committed after it read the table, under the lock, and before it commits, under the lock again. If their changes meet what
it wrote or looked up, its files are made again. Only in table versions 8 and 9, where instants may be completed in another order than they
were requested in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.commit.concurrency.attempts import open_file
from lakehouse_engine.commit.expected import keeps_rows, touched_by
from lakehouse_engine.commit.versions import planned_groups
from lakehouse_engine.errors import (
    ChangedSinceReadError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CommitRuledOutError,
    LakehouseError,
    LateAttemptError,
    LockError,
    TableNotFoundError,
)
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.view.table_state import TableState

FINAL = (
    ChangedSinceReadError,
    CommitOutcomeUnknownError,
    CommitRuledOutError,
    LockError,
    TableNotFoundError,
)
"""Errors after which a write is not repeated."""
_UNDOING = frozenset({Action.RESTORE, Action.ROLLBACK})


class OvertakenError(CommitConflictError):
    """What a write rests on was changed while it made its files, so they must be made again. Never reaches the caller of a write."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The `partitions` in which a write looked keys up: any change of rows there could change what it found. Empty for a write that only
    adds rows. (The file groups that it wrote are in its metadata.)
    """

    partitions: frozenset[str] = frozenset()


def check_not_overtaken(then: TableState, now: TableState, inflight: Instant, metadata: HoodieCommitMetadata, reach: Reach) -> None:
    """Raise `OvertakenError` if the commit of `inflight`, made from the table as of `then`, does not fit the table as of `now`.

    The caller holds the table lock, and held it when the instant was requested. Raises as `TableState.commit_metadata` for damaged commits.
    """
    reason = next(_reasons(then, now, inflight, metadata, reach), None)
    if reason is not None:
        raise OvertakenError(f"{reason} while this write made its files", instant=inflight, table=now.config.name)


def check_undisturbed(then: TableState, instant_time: str, error: LakehouseError) -> None:
    """Raise `OvertakenError` from an `error` of a write that was made of the table as it was `then`, if anything has happened to the table
    since, or its instant is being taken back: files that it read, or made, may be gone.
    """
    now = then.refresh()
    is_same = then.config == now.config and _others(then, instant_time) == _others(now, instant_time)
    if not is_same or _is_being_taken_back(now, instant_time, error):
        raise OvertakenError(
            f"others changed the table while this write made its files, which failed: {error.message}", table=now.config.name
        ) from error


def _is_being_taken_back(now: TableState, instant_time: str, error: LakehouseError) -> bool:
    """A process that takes a write back closes it to its tasks before anything shows on the timeline."""
    own = now.timeline.find(instant_time)
    is_closed = own is not None and own.state is State.INFLIGHT and not has_file(now.storage, open_file(instant_time))
    return own is None or is_closed or isinstance(error, LateAttemptError)


def _others(state: TableState, instant_time: str) -> frozenset[Instant]:
    return frozenset(one for one in state.timeline if one.requested_time != instant_time)


def _reasons(
    then: TableState, now: TableState, inflight: Instant, metadata: HoodieCommitMetadata, reach: Reach
) -> Iterator[str]:
    yield from _of_table(then, now, inflight)
    groups = groups_of(metadata)
    yield from _of_plans(then, now, inflight, groups)
    known = {instant.requested_time for instant in then.timeline.completed().writes()}
    for instant in now.timeline.completed().writes():
        if instant.requested_time in known:
            continue
        other = now.commit_metadata(instant)
        if groups & groups_of(other):
            yield f"{instant} changed a file group that it writes"
        if not keeps_rows(now.config, instant, other) and touched_by(other).within(reach.partitions):
            yield f"{instant} changed rows in a partition whose keys it looked up"


def _of_table(then: TableState, now: TableState, inflight: Instant) -> Iterator[str]:
    if now.timeline.find(inflight.requested_time) != inflight or inflight.at(State.REQUESTED) not in now.timeline_files:
        yield "it was taken back by another writer, for whom it was dead,"
    if any(instant.action in _UNDOING for instant in now.timeline.pending()):
        yield "a restore or rollback was begun"
    if now.config != then.config:
        yield "the table's properties were changed"
    if table_schema(now) != table_schema(then):
        yield "the table's columns were changed"
    yield from _of_archive(then, now)


def _of_archive(then: TableState, now: TableState) -> Iterator[str]:
    """Reasons in writes of `then` that have left the timeline. A completed one was archived, or taken back; a pending one may have been
    completed and archived, and what it changed is not looked up.
    """
    here = {instant.requested_time for instant in now.timeline}
    completed = {instant.requested_time for instant in then.timeline.completed().writes()}
    pending = {instant.requested_time for instant in then.timeline.pending().writes()}
    if not (completed | pending) - here:
        return
    archived = {one.requested_time for one in now.archived_timeline.readable_instants() if one.is_completed and one.action.is_write}
    if completed - here - archived:
        yield "a write that it began from was taken back"
    if pending & archived:
        yield "another write was completed, and archived,"


def _of_plans(then: TableState, now: TableState, inflight: Instant, groups: frozenset[FileGroupId]) -> Iterator[str]:
    before = {inflight.requested_time, *(instant.requested_time for instant in then.timeline)}
    if all(instant.requested_time in before for instant in now.timeline.pending()):
        return
    for group, time in planned_groups(now).items():
        if group in groups and time not in before:
            yield f"the table service {time} was planned for a file group that it writes"


def groups_of(metadata: HoodieCommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a commit wrote files of, or replaced."""
    written = {FileGroupId(path, stat.file_id or "") for path, stats in metadata.partition_to_write_stats.items() for stat in stats}
    replaced = metadata.partition_to_replace_file_ids or {}
    return frozenset(written | {FileGroupId(path, group) for path, ids in replaced.items() for group in ids})
