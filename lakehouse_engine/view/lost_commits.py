"""Completed writes whose completed file is lost (deleted, or not copied).

Such a write looks like a dead one: reads would skip its rows, and the next change would roll it back for good. It can be recognised if this
engine made it and a later instant. Every change begins by taking back pending instants under the lock, so nothing that this engine
completed is newer than its own pending write (`commit.locked`, `commit.rollback.recover`). Nothing is claimed for:

- tables that Hudi writes too (optimistic concurrency control): a pending write may be left to Hudi for a while
- a write with a heartbeat, even a dead one: its process has not ended it, so it was never completed
- a write without its requested file: an inflight file can arrive late in an object store, after the write was taken back
- a write that a rollback or restore is taking back: those delete the completed file first

Plans of table services wait for an executor, however old. A compaction was completed if a later commit or plan names its base files, or a
clean took its inputs. The newest instant has nothing after it: without its completed file it is a dead write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakehouse_engine.errors import CorruptInstantError, FormatError, InstantNotFoundError, LakehouseError, MetadataError
from lakehouse_engine.format.seal import is_intact
from lakehouse_engine.model.commit_metadata import WRITER_KEY
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import NEVER, is_later, latest
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.timeline.restores import taken_by
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_PLANNED = (Action.COMPACTION, Action.LOG_COMPACTION)


def lost_commits(state: TableState) -> tuple[Instant, ...]:
    """Completed instants whose file is lost, oldest first. Opens nothing unless a write is pending below a completed instant."""
    suspected = [instant for instant in _suspects(state) if _was_completed(state, instant)]
    if not suspected:
        return ()
    # A listing is not of one moment. What is gone before a second listing begins, and is not being taken back in that, was lost.
    gone = {instant for instant in suspected if state.active.find_completed(instant) is None}
    now = state.refresh()
    return tuple(one.at(State.COMPLETED) for one in _suspects(now) if one in gone and not _is_taken_back(now, one))


def check_no_commit_is_lost(state: TableState, lost: Iterable[Instant], *, until: str | None = None) -> None:
    """Raise `CorruptInstantError` naming the file of the first of these lost commits that may show at the moment `until` (None: of any)."""
    for instant in lost:
        if until is None or not is_later(instant.requested_time, until):
            raise CorruptInstantError(
                f"the completed file of the {instant.action} {instant.requested_time} is gone, and later changes of the table rest on that"
                " write: put the file back from a backup; `repair` says what else leads out",
                instant=instant.requested_time,
                path=completed_path(state, instant),
                table=state.config.name,
            )


def completed_path(state: TableState, instant: Instant) -> str:
    """The path of the file that completes an instant; with `*` for a completion time that is not known any more."""
    completed, folder = instant.at(State.COMPLETED), state.format.timeline_folder
    if state.format.completes_with_time and completed.completed_at is None:
        return f"{folder}/{completed.requested_time}_*.{completed.action}"
    return f"{folder}/{state.format.file_name(completed)}"


def writes_before(state: TableState, time: str) -> Timeline:
    """The completed writes before one whose completed file is gone or damaged."""
    found = state.timeline.completed().writes().filter(lambda one: one.requested_time != time)
    return found.up_to(shown_at(state, time))


def writes_since(state: TableState, time: str) -> Timeline:
    """The completed writes after one whose completed file is gone or damaged."""
    return state.timeline.completed().writes().after(shown_at(state, time))


def shown_at(state: TableState, time: str) -> str:
    """The moment at which a write shows; of one whose completion time is gone, a moment before that, since which nothing else showed."""
    moment = state.order.moment(time)
    return time if moment == NEVER else moment


def _suspects(state: TableState) -> list[Instant]:
    """Inflight writes and compactions of this engine's kind that are older than a completed instant."""
    pending = [one for one in state.timeline if one.action in (*_WRITES, Action.COMPACTION) and one.state is State.INFLIGHT]
    if not pending:
        return []
    newest = latest(one.requested_time for one in state.timeline if one.is_completed and _may_prove(one))
    return [one for one in pending if not is_later(one.requested_time, newest) and one.at(State.REQUESTED) in state.timeline_files]


def _may_prove(instant: Instant) -> bool:
    return instant.action.is_write or instant.action in (Action.CLEAN, Action.SAVEPOINT)


def _was_completed(state: TableState, instant: Instant) -> bool:
    if instant.action is Action.COMPACTION:
        return _was_compacted(state, instant)
    if _may_have_other_writers(state) or has_file(state.storage, heartbeat_file(instant.requested_time)):
        return False
    try:
        is_ours = state.format.is_sealed_commit(state.active.read(instant))
    except InstantNotFoundError:
        return False
    return is_ours and any(_proves(state, one, instant) for one in reversed(state.timeline.completed().instants))


def _may_have_other_writers(state: TableState) -> bool:
    """True if Hudi may write beside this engine. Reads must not fail for lock settings that only writes need."""
    try:
        return lock_options(state.config).optimistic
    except LakehouseError:
        return True


def _was_compacted(state: TableState, compaction: Instant) -> bool:
    """True if anything depends on a compaction's base files, or on its completion, whichever program made it."""
    time, base = compaction.requested_time, f"_{compaction.requested_time}."
    later = state.timeline.newer_than(time)
    stats = (stat for one in later.completed().writes() for stat in state.commit_metadata(one).write_stats())
    try:
        # A group in a compaction plan is not rewritten, and logs to it start a slice without a base file.
        if any(base in (stat.base_file or "") or (stat.prev_commit == time and stat.log_version is None) for stat in stats):
            return True
        active = state.active
        return _is_planned_upon(active, later, base) or _lost_its_input(state, active, compaction)
    except (FormatError, InstantNotFoundError):
        return False  # damage of its own, which other checks report


def _is_planned_upon(active: ActiveTimeline, later: Timeline, base: str) -> bool:
    plans = (active.plan(HoodieCompactionPlan, one.at(State.REQUESTED)) for one in later if one.action is Action.COMPACTION)
    return any(base in (operation.data_file_path or "") for plan in plans for operation in plan.operations or ())


def _lost_its_input(state: TableState, active: ActiveTimeline, compaction: Instant) -> bool:
    """True if a clean took a file that was to be merged: cleans, including Hudi's, keep them until the compaction completes, except in
    groups that a later write replaced.
    """
    cleans = [one for one in state.timeline.newer_than(compaction.requested_time).completed() if one.action is Action.CLEAN]
    if not cleans:
        return False
    plan, replaced = active.plan(HoodieCompactionPlan, compaction.at(State.REQUESTED)), state.view.replaced_at
    operations = [one for one in plan.operations or () if FileGroupId(one.partition_path or "", one.file_id or "") not in replaced]
    inputs = {path for operation in operations for path in _inputs(operation)}
    return any(not inputs.isdisjoint(active.plan(HoodieCleanMetadata, one).deleted_paths()) for one in cleans)


def _inputs(operation: HoodieCompactionOperation) -> Iterator[str]:
    """Paths of a slice's base file and logs. Hudi's plans may hold absolute paths."""
    for path in (operation.data_file_path, *(operation.delta_file_paths or ())):
        if path:
            yield join_path(operation.partition_path or "", path.rpartition("/")[2])


def _proves(state: TableState, later: Instant, instant: Instant) -> bool:
    """True if this engine began a completed instant after the write had completed."""
    if not is_later(later.requested_time, instant.requested_time):
        # Only a completed write can be savepointed.
        return later.action is Action.SAVEPOINT and later.requested_time == instant.requested_time
    if later.action is Action.CLEAN:
        return _is_planned_here(state, later)
    if not later.action.is_write:
        return False
    plans = [plan for one in _PLANNED if (plan := Instant(later.requested_time, one, State.REQUESTED)) in state.timeline_files]
    if plans:
        return _is_planned_here(state, plans[0])  # Hudi may have planned what this engine ran
    try:
        return WRITER_KEY in state.commit_metadata(later).extra_metadata
    except (FormatError, InstantNotFoundError):
        return False


def _is_planned_here(state: TableState, instant: Instant) -> bool:
    try:
        return is_intact(state.active.read(instant.at(State.REQUESTED))) is True
    except InstantNotFoundError:
        return False


def _is_taken_back(now: TableState, instant: Instant) -> bool:
    """True if a restore is unfinished, or a rollback targets the write."""
    pending = now.timeline.pending()
    if any(one.action is Action.RESTORE for one in pending):
        return True
    return any(_may_take(now, one, instant) for one in now.timeline if one.action is Action.ROLLBACK)


def _may_take(now: TableState, rollback: Instant, instant: Instant) -> bool:
    try:
        return taken_by(now.active, rollback) == instant.requested_time
    except (InstantNotFoundError, MetadataError):
        return not rollback.is_completed  # its plan is being written
