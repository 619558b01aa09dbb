"""Selects the instants that leave the active timeline (hudi-format 8; Hudi `HoodieTimelineArchiver.getInstantsToArchive`). Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lakehouse_engine.commit.table_clock import table_clock, wall_time
from lakehouse_engine.errors import TableNotFoundError
from lakehouse_engine.metadata_table.building.plans import NO_INSTANT
from lakehouse_engine.metadata_table.table import is_in_use, metadata_state
from lakehouse_engine.metadata_table.written import unmerged
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time, parse_instant_time
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import NEVER, earliest, in_time_order, is_later, latest
from lakehouse_engine.model.plans import HoodieCleanerPlan
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.services.clean.policies import retention
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.timeline.restores import took_rows
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.protected import savepoint_metadata
from lakehouse_engine.view.table_state import TableState

_COUNTED_ALONE = (Action.CLEAN, Action.ROLLBACK)


@dataclass(frozen=True, slots=True)
class PlannedArchive:
    """Completed instants to archive, in the order of the archive file: cleans and rollbacks, then writes, each oldest first.

    `kept` says what stays that would otherwise go, and why.
    """

    instants: tuple[Instant, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stop:
    """Writes from `time` on stay because of `what`."""

    time: str
    what: str


def plan_archive(
    state: TableState, options: ArchiveOptions, clean: CleanOptions, compaction: CompactionOptions, data: TableState | None = None
) -> PlannedArchive:
    """Instants that archiving takes from the active timeline of `state` now. `data`: the table whose metadata table `state` is.

    Once there are more than `max_commits` writes, they go down to `min_commits`, oldest first and without gaps. Cleans and rollbacks are
    counted separately, and none goes before older writes. Savepoints, restores and rollbacks that took rows from the table (incremental
    readers look for both) and everything pending stay.
    """
    bound = _MetadataBound(state, data)
    leaving, kept, oldest = _writes(state, options, clean, compaction, bound)
    services = [instant for action in _COUNTED_ALONE for instant in _surplus_of(state, action, options, oldest, bound)]
    return PlannedArchive((*in_time_order(services, lambda instant: instant.requested_time), *leaving), tuple(kept))


def is_due(
    state: TableState, options: ArchiveOptions, clean: CleanOptions, compaction: CompactionOptions, data: TableState | None = None
) -> bool:
    """True if writes or cleans leave the active timeline now.

    Rollbacks wait for writes: only their files say which may go, and those that stay for good would be opened after each commit.
    """
    bound = _MetadataBound(state, data)
    leaving, _, oldest = _writes(state, options, clean, compaction, bound)
    return bool(leaving or _surplus_of(state, Action.CLEAN, options, oldest, bound))


@dataclass(slots=True)
class _MetadataBound:
    """How far a table with a metadata table may be archived; with `data`, how far the metadata table of `data` may be.

    Hudi's readers take a log block for a part of the metadata table if its instant is on the active timeline of the data table (0.15) or on
    one of both (1.x; `HoodieTableMetadataUtil.getValidInstantTimestamps`). So it stays on both until a compaction has merged the block. The
    metadata table also keeps what the data table keeps, for rollbacks (both Hudi `HoodieTimelineArchiver`). The metadata table is opened
    when the bound is asked for, once.
    """

    state: TableState
    data: TableState | None
    _since: str | None = None

    @property
    def since(self) -> str:
        """Requested time from which on instants stay; `NEVER` if there is no bound."""
        if self._since is None:
            self._since = earliest(self._times()) or NEVER
        return self._since

    def _times(self) -> Iterator[str]:
        metadata = _metadata_table_of(self.state) if self.data is None else self.state
        if metadata is not None:
            yield from (one.requested_time for one in unmerged(metadata))
        if self.data is not None:
            start = self.data.timeline.start
            yield "0" if start is None else start.requested_time
            # What was completed before a build has no instant of its own here: the build tells of it.
            builds = [one for one in self.state.timeline if one.requested_time.startswith(NO_INSTANT) and one.completed_at is not None]
            yield from (one.requested_time for one in builds if start is None or is_later(one.completed_at or "", start.requested_time))

    def stops(self) -> Iterator[_Stop]:
        if self.since != NEVER:
            what = "the data table has it, or " if self.data is not None else ""
            yield _Stop(self.since, f"{self.since}: {what}it is in logs of the metadata table until that is compacted")


def _metadata_table_of(state: TableState) -> TableState | None:
    """None without one in use, or if its directory is gone, with all that it had."""
    if not is_in_use(state):
        return None
    try:
        return metadata_state(state)
    except TableNotFoundError:
        return None


def _writes(
    state: TableState, options: ArchiveOptions, clean: CleanOptions, compaction: CompactionOptions, bound: _MetadataBound
) -> tuple[list[Instant], list[str], str]:
    """Writes that leave, notes on what stays that would otherwise go, and the time of the oldest write that stays."""
    writes = _by_request(state)
    surplus = writes[: len(writes) - options.min_commits] if len(writes) > options.max_commits else ()
    leaving, kept = _leaving(state, surplus, _stops(state, options, clean, compaction, bound)) if surplus else ([], [])
    return leaving, kept, writes[len(leaving)].requested_time if len(leaving) < len(writes) else ""


def _by_request(state: TableState) -> list[Instant]:
    """Completed writes in the order in which they leave: by requested time, because writes requested before the timeline's start count as
    archived.
    """
    return in_time_order(state.timeline.completed().writes(), lambda instant: instant.requested_time)


def _leaving(state: TableState, surplus: Sequence[Instant], stops: Sequence[_Stop]) -> tuple[list[Instant], list[str]]:
    leaving: list[Instant] = []
    kept: list[str] = []
    passed = [instant.requested_time for instant in surplus if instant.requested_time in state.timeline.savepointed]
    named = _savepoints(state, passed)
    for instant in surplus:
        time = instant.requested_time
        stop = next((stop for stop in stops if not is_later(stop.time, time)), None)
        if stop is not None:
            return leaving, [*kept, f"archiving stops at {stop.what}"]
        if instant.action is Action.REPLACE_COMMIT and has_replaced_files(state, instant):
            # Only active replace commits hide replaced groups from readers: if this one were archived, its rows would be read twice.
            return leaving, [*kept, f"archiving stops at the replacecommit {time}: files that it replaced are not cleaned yet"]
        leaving.append(instant)
        if time in named:
            kept.append(f"{named[time]} keeps its commit aside: the table can still be restored to it")
    return leaving, kept


def _surplus_of(
    state: TableState, action: Action, options: ArchiveOptions, oldest_write: str, bound: _MetadataBound
) -> list[Instant]:
    done = [instant for instant in state.timeline.completed() if instant.action is action]
    if action is Action.ROLLBACK and len(done) > options.max_commits:
        active = state.active
        done = [instant for instant in done if not took_rows(active, instant)]
    surplus = done[: len(done) - options.min_commits] if len(done) > options.max_commits else []
    leaving = [instant for instant in surplus if is_later(oldest_write, instant.requested_time)]
    return [instant for instant in leaving if is_later(bound.since, instant.requested_time)]


def _stops(
    state: TableState, options: ArchiveOptions, clean: CleanOptions, compaction: CompactionOptions, bound: _MetadataBound
) -> list[_Stop]:
    """Stops, earliest first."""
    stops = [*_pending(state), *_young(state), *_retained(state, clean), *_compacting(state, compaction), *bound.stops()]
    first = earliest(state.timeline.savepointed)
    if not options.beyond_savepoint and first is not None:
        stops.append(_Stop(first, _savepoints(state, [first])[first]))
    return in_time_order(stops, lambda stop: stop.time)


def _pending(state: TableState) -> Iterator[_Stop]:
    """Pending writes, and the newest completed write before the oldest of them, on which it is based."""
    pending = in_time_order(state.timeline.pending().writes(), lambda instant: instant.requested_time)
    if pending:
        before = [one.requested_time for one in _by_request(state) if is_later(pending[0].requested_time, one.requested_time)]
        yield _Stop(latest(before) or pending[0].requested_time, f"pending {pending[0].action} {pending[0].requested_time}")


def _young(state: TableState) -> Iterator[_Stop]:
    """Young commits: a Hudi writer that has read the timeline but has no instant yet may still open the commits that it saw."""
    options = lock_options(state.config)
    if options.optimistic:
        now = parse_instant_time(table_clock(state).next(state.timeline))
        time = format_instant_time(now - timedelta(milliseconds=options.tolerated_ms))
        yield _Stop(time, f"what is younger than {options.tolerated_ms / 1000:g} s: a writer of Hudi may be about to read it")


def _retained(state: TableState, clean: CleanOptions) -> Iterator[_Stop]:
    """Instants that cleaning keeps readable, for time travel or for an unfinished clean."""
    kept = retention(state.timeline, clean, wall_time(state)).earliest
    if kept is not None:
        readable = [one.requested_time for one in _by_request(state) if not state.order.is_after(kept.requested_time, one.requested_time)]
        what = f"the {kept.action} {kept.requested_time}: cleaning keeps it and later ones readable"
        yield _Stop(earliest(readable) or kept.requested_time, what)
    for instant in state.timeline.pending():
        if instant.action is Action.CLEAN:
            requested = Instant(instant.requested_time, Action.CLEAN, State.REQUESTED)
            plan = state.active.plan(HoodieCleanerPlan, requested)
            if plan.earliest_instant_to_retain is not None:
                yield _Stop(plan.earliest_instant_to_retain.timestamp, f"pending clean {instant.requested_time}")


def _compacting(state: TableState, options: CompactionOptions) -> Iterator[_Stop]:
    """Delta commits that are counted to decide if a compaction is due (Hudi `getOldestInstantToRetainForCompaction`)."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return
    writes = _by_request(state)
    last = max((number for number, instant in enumerate(writes) if instant.action is Action.COMMIT), default=-1)
    deltas = [instant for instant in writes[last + 1 :] if instant.action is Action.DELTA_COMMIT]
    if not deltas:
        return
    counted = deltas[-options.delta_commits :] if len(deltas) >= options.delta_commits or last < 0 else [writes[last]]
    yield _Stop(counted[0].requested_time, f"the {counted[0].action} {counted[0].requested_time}: the next compaction is reckoned from it")


def has_replaced_files(state: TableState, instant: Instant) -> bool:
    """True if files are left of a group that a completed replace commit took out of the table."""
    groups = state.commit_metadata(instant).replaced_groups()
    lister = StorageLister(state.storage)
    stored = {partition: [file.name for file in lister.files(partition)] for partition in {group.partition_path for group in groups}}
    return any(_is_of(name, group) for group in groups for name in stored[group.partition_path])


def _is_of(name: str, group: FileGroupId) -> bool:
    return name.removeprefix(".").startswith(f"{group.file_id}_")


def _savepoints(state: TableState, times: Sequence[str]) -> dict[str, str]:
    """Texts for the savepoints of those times; reads all savepoints once."""
    known = savepoint_metadata(state) if times else {}
    names = {time: known[time].name for time in times}
    return {time: f"the savepoint {name!r} of {time}" if name else f"the savepoint of {time}" for time, name in names.items()}
