"""Makes the damaged record of a completed write again from other data.

Its files carry its instant. Earlier writes tell what it replaced, its inflight file and plans what it was about to do, its files the
columns. It is not always provable that no file is missing, so this runs only on request (docs/adr/0019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from lakehouse_engine.errors import FormatError, InstantNotFoundError, MetadataError
from lakehouse_engine.format.avro.avro_schema import without_meta_columns
from lakehouse_engine.format.file_names import is_log_file_name, parse_log_file
from lakehouse_engine.manifest.written import write_record
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, WRITE_ID_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time, parse_instant_time
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveFiles, LiveGroup, WriteRecord
from lakehouse_engine.model.order import NEVER, earliest, is_between, is_later, latest
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.repair.repairs.traces import Trace, traces
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.lost_commits import writes_before, writes_since
from lakehouse_engine.view.plans import clustering_groups
from lakehouse_engine.view.table_state import TableState

REBUILT_KEY = "lakehouse.rebuilt"
"""Extra metadata of such a commit: what is no longer known."""
_LOST = "extra metadata but for the id of a write, numbers of deleted rows, checksums of logs"

Op = WriteOperationType


@dataclass(frozen=True, slots=True)
class _Intent:
    """Kind of write, groups that it was about to write and to replace, and its id (`commit.outcome`)."""

    operation: WriteOperationType | None = None
    planned: frozenset[FileGroupId] = frozenset()
    dropped: frozenset[FileGroupId] = frozenset()
    write_id: str | None = None

    def name(self) -> dict[str, str | None]:
        """Id by which a repeated call finds the write."""
        return {} if self.write_id is None else {WRITE_ID_KEY: self.write_id}


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Evidence of the write besides its files. `intent` was recorded before; `before` are the files that it found."""

    intent: _Intent
    before: LiveFiles
    later: tuple[WriteRecord, ...]


def recommitted(state: TableState, instant: Instant) -> HoodieCommitMetadata:
    """Metadata of the completed write `instant`, as far as it can be known.

    Raises `MetadataError` if it is unclear what the write did, `FormatError` if other evidence is damaged.
    """
    time = instant.requested_time
    known = _evidence(state, instant)
    found = traces(state, time, {group: begun for group, live in known.before.groups.items() if (begun := _begun(live))})
    _check_nothing_is_lost(state, time, known, found)
    stats: dict[str, list[HoodieWriteStat]] = {}
    for trace in found:
        stats.setdefault(trace.group.partition_path, []).append(trace.stat)
    replaced = _replaced(state, instant, known, found) if instant.action is Action.REPLACE_COMMIT else None
    return HoodieCommitMetadata(
        partition_to_write_stats={path: tuple(group) for path, group in stats.items()},
        operation_type=known.intent.operation,
        compacted=known.intent.operation in (Op.COMPACT, Op.LOG_COMPACT),
        extra_metadata={**known.intent.name(), SCHEMA_KEY: _schema(state, time, known, found), REBUILT_KEY: _LOST},
        partition_to_replace_file_ids=replaced,
    )


def completion_of(state: TableState, instant: Instant) -> str | None:
    """When a completed write was completed: as its file's name says, or, where that is gone, right after it was requested. None where the
    table's version records no completion times.

    Nothing else was completed between that moment and the one that the name said, so that every read has the rows that it had. Raises
    `MetadataError` where something was.
    """
    if not state.format.completes_with_time or instant.completed_at is not None:
        return instant.completed_at
    time = instant.requested_time
    done = [one for one in state.timeline.completed() if one.requested_time != time]
    following = earliest(one.requested_time for one in done if is_later(one.requested_time, time)) or NEVER
    beside = [one for one in done if one.completed_at is not None and is_between(one.completed_at, time, following)]
    if beside:
        raise MetadataError(f"when it was completed cannot be told: {beside[0].requested_time} was completed at about that time")
    return format_instant_time(parse_instant_time(time) + timedelta(milliseconds=1))


def _evidence(state: TableState, instant: Instant) -> _Evidence:
    archived, time = state.archived_files(), instant.requested_time
    if not archived.is_known:
        raise MetadataError("what was written before it is archived, and the archive is damaged too")
    before = [write for write in writes_before(state, time) if is_later(write.requested_time, archived.boundary)]
    return _Evidence(
        _intent(state, instant),
        archived.live.after(write_record(write.requested_time, state.commit_metadata(write)) for write in before),
        tuple(record for write in writes_since(state, time) if (record := _record(state, write)) is not None),
    )


def _record(state: TableState, write: Instant) -> WriteRecord | None:
    """Metadata of a commit; None if it is damaged too, so its evidence is missing."""
    try:
        return write_record(write.requested_time, state.commit_metadata(write))
    except MetadataError:
        return None


def _intent(state: TableState, instant: Instant) -> _Intent:
    """What was recorded before the write."""
    active, time = state.active, instant.requested_time
    for action, operation in ((Action.COMPACTION, Op.COMPACT), (Action.LOG_COMPACTION, Op.LOG_COMPACT)):
        requested = Instant(time, action, State.REQUESTED)
        if action.completes_as is instant.action and state.storage.head(_path(state, requested)) is not None:
            plan = active.plan(HoodieCompactionPlan, requested)
            return _Intent(operation, frozenset(FileGroupId(one.partition_path or "", one.file_id or "") for one in plan.operations or ()))
    try:
        noted = active.commit(Instant(time, instant.action, State.INFLIGHT))
    except (FormatError, InstantNotFoundError):
        return _Intent()
    groups = (FileGroupId(path, stat.file_id) for path, stats in noted.partition_to_write_stats.items() for stat in stats if stat.file_id)
    name = noted.extra_metadata.get(WRITE_ID_KEY)
    return _Intent(noted.operation_type, frozenset(groups), frozenset(noted.replaced_groups()), name)


def _path(state: TableState, instant: Instant) -> str:
    return f"{state.format.timeline_folder}/{state.format.file_name(instant)}"


def _begun(live: LiveGroup) -> str:
    """Instant of a group's newest slice."""
    return latest(file.base_instant for file in live.files())


def _check_nothing_is_lost(state: TableState, time: str, known: _Evidence, found: Sequence[Trace]) -> None:
    """Raise if evidence says that the write wrote a group of which neither its file nor a later write's result exists."""
    superseded = {group for write in known.later for group, file in write.files if not file.is_log}
    superseded.update(group for write in known.later for group in write.replaced)
    traced = {trace.group for trace in found}
    for group in sorted((known.intent.planned | _logged_upon(state, time)) - traced - superseded, key=str):
        where = f"the file group {group.file_id} of {group.partition_path or 'the table'}"
        raise MetadataError(f"it wrote to {where}, and no file of that is there")


def _logged_upon(state: TableState, time: str) -> set[FileGroupId]:
    """Groups with logs on a slice that the write began."""
    lister, found = StorageLister(state.storage), set()
    for partition in state.view.partitions():
        for file in lister.files(partition):
            if is_log_file_name(file.name):
                log = parse_log_file(partition, file.name)
                found.update([FileGroupId(partition, log.file_id)] if log.instant_time == time and not log.is_cdc else [])
    return found


def _schema(state: TableState, time: str, known: _Evidence, found: Sequence[Trace]) -> str:
    """Avro schema of the user columns, from its files, or from the writes around it if those agree."""
    texts = {without_meta_columns(trace.schema) for trace in found if trace.schema is not None}
    if not texts:
        texts = {text for write in _neighbours(state, time, known) if (text := state.commit_metadata(write).schema_json)}
    if len(texts) != 1:
        raise MetadataError("which columns the table had as of it cannot be told" if not texts else "its files have different columns")
    return texts.pop()


def _neighbours(state: TableState, time: str, known: _Evidence) -> list[Instant]:
    """Schemas of the writes before and after. Empty if only one exists, because this write may have changed the columns; dropping
    partitions does not.
    """
    before, after = list(writes_before(state, time))[-1:], list(writes_since(state, time))[:1]
    if known.intent.operation is Op.DELETE_PARTITION:
        return before or after
    return [*before, *after] if before and after else []


def _replaced(state: TableState, instant: Instant, known: _Evidence, found: Sequence[Trace]) -> dict[str, tuple[str, ...]]:
    """Groups that a replace commit replaced; none of its own files says so."""
    live = {group for group in known.before.groups if group not in {trace.group for trace in found}}
    clustered = {FileGroupId(*group) for group in clustering_groups(state, instant)}
    if clustered:
        gone = clustered
    elif known.intent.dropped:
        gone = set(known.intent.dropped)
    elif known.intent.operation is Op.INSERT_OVERWRITE_TABLE:
        gone = live
    elif known.intent.operation is Op.INSERT_OVERWRITE and found:
        written = {trace.group.partition_path for trace in found}
        gone = {group for group in live if group.partition_path in written}
    else:
        raise MetadataError("which file groups it took out of the table cannot be told")
    if any(group in gone for write in known.later for group, _ in write.files):
        raise MetadataError("later writes went on with file groups that it seems to have taken out of the table")
    by_partition: dict[str, list[str]] = {}
    for group in sorted(gone, key=str):
        by_partition.setdefault(group.partition_path, []).append(group.file_id)
    return {path: tuple(ids) for path, ids in by_partition.items()}
