"""Whether every file that a read needs is there.

The slices of a listing are the newest ones that are *left*: after a clean, or where a file is lost, a listing is silently short. What
must be there follows from the write stats of commits, archived or not: the last write of a group up to an instant. Where nothing is known
of archived writes (`TableState.archived_files`), `prevCommit` of the first write after the instant says that there was one before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.files.log_scanner import LoggedSlice, LogPromise, ToldLogs
from lakehouse_engine.format.file_names import is_base_file_name, parse_log_file
from lakehouse_engine.format.timeline.metadata_avro import decode_record
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice, join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveFiles, WrittenFile
from lakehouse_engine.model.order import Order, is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.read.below_logs import with_base
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.view.archived_files import ArchivedFiles
from lakehouse_engine.view.protected import is_of_later_write
from lakehouse_engine.view.slicing import replaced_groups, whole_slices
from lakehouse_engine.view.table_state import TableState

Within = Callable[[Iterable[str]], Iterable[str]]
"""Picks some of the given partition paths."""
_Write = tuple[Instant, HoodieCommitMetadata]
NO_COMMIT = (None, "", "null")
"""What `prevCommit` is in the first write of a group."""


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The base file, or a log file, that a group must have; `path` is a description where only the group and the instant are known."""

    group: FileGroupId
    instant_time: str
    path: str

    def __str__(self) -> str:
        return self.path


def lost_files(
    state: TableState,
    as_of: str | None,
    slices: Sequence[FileSlice],
    *,
    begin: str | None = None,
    logs: bool = False,
    within: Within | None = None,
) -> list[ExpectedFile]:
    """Base files, and with `logs` log files, that the groups live at `as_of` (None: now) must have and `slices`, the listed ones, do not.

    With `begin` only base files written after it count, with `within` only files of the partitions that it keeps. Complete if no write
    after `as_of` has been archived, and it is known what archived writes left.
    """
    # A slice may consist of logs only; its base instant is then that of the write that began it.
    found = {piece.group: piece.base_instant for piece in slices if piece.base_file is not None or logs}
    writes = list(_writes(state))
    partitions = None if within is None else frozenset(within(_partitions(state, as_of, writes)))
    expected, replaced = _expected(state, as_of, writes, partitions), state.view.replaced_as_of(as_of)
    # Of others the base file was written, and what is left of them is only what was logged later.
    told = ((piece.group, expected.get(piece.group)) for piece in slices if piece.base_file is None)
    headless = {group for group, file in told if file is not None and _is_base(file.path)}
    lost = [
        file
        for group, file in expected.items()
        if (is_later(file.instant_time or "0", found.get(group, "")) or group in headless)
        and group not in replaced
        and (begin is None or not file.instant_time or not state.order.is_visible(file.instant_time, begin))
    ]
    return lost + (_lost_logs(slices, log_promises(state, as_of, partitions), replaced, state.order) if logs and not lost else [])


def _partitions(state: TableState, as_of: str | None, writes: Sequence[_Write]) -> set[str]:
    """Those that writes name which `_expected` and `log_promises` ask."""
    found = _archived(state, as_of).live.partitions()
    for _, metadata in writes:
        found.update(metadata.partition_to_write_stats, (group.partition_path for group in replaced_groups(metadata)))
    return found.union(*(write.by_partition for write in state.active_writes(as_of)))


def log_promises(
    state: TableState, as_of: str | None, partitions: frozenset[str] | None = None
) -> dict[FileGroupId, list[LogPromise]]:
    """What completed commits not after `as_of` wrote to log files of some partitions (None: of all); nothing for copy-on-write tables.

    Of archived commits only what they wrote to slices that were live when the last of them was archived.
    """
    promises: dict[FileGroupId, list[LogPromise]] = {}
    if state.config.table_type is TableType.MERGE_ON_READ:
        for group, file in _logged(state, as_of, partitions):
            promise = LogPromise(file.path, file.instant_time, file.start, file.size, file.checksum)
            promises.setdefault(group, []).append(promise)
    return promises


def told_logs(state: TableState, as_of: str | None) -> ToldLogs:
    """The writes of which `log_promises` of the same moment tells every log file."""
    archived = _archived(state, as_of)
    writes = state.timeline.completed().writes().up_to(as_of)
    newer = [one for one in writes if is_later(one.requested_time, archived.boundary)]
    active = frozenset(one.requested_time for one in newer if state.named_files(one) is not None)
    start = state.timeline.start
    # Newer than whatever was archived, and older than the timeline: taken back, with what came to an object store after that.
    gap = (archived.boundary, start.requested_time) if start is not None and archived.is_known and archived.boundary else ("", "")
    return ToldLogs(active, archived.told_to, bool(archived.told_to) and archived.all_told, gap)


def logged_slices(state: TableState, as_of: str | None, slices: Iterable[FileSlice]) -> list[LoggedSlice]:
    """Slices with what completed commits not after `as_of` (None: all) say of their log files."""
    pieces = list(slices)
    promises, told = log_promises(state, as_of, partitions_of(pieces)), told_logs(state, as_of)
    return [LoggedSlice(piece, tuple(promises.get(piece.group, ())), told) for piece in pieces]


def partitions_of(slices: Iterable[FileSlice]) -> frozenset[str]:
    return frozenset(piece.partition_path for piece in slices)


def _logged(state: TableState, as_of: str | None, partitions: frozenset[str] | None) -> Iterator[tuple[FileGroupId, WrittenFile]]:
    archived = _archived(state, as_of)
    for group, live in archived.live.within(partitions):
        yield from ((group, log) for log in live.logs)
    for write in state.active_writes(as_of):
        if is_later(write.instant_time, archived.boundary):
            yield from ((group, file) for group, file in write.files_in(partitions) if file.is_log)


def _lost_logs(
    slices: Sequence[FileSlice], promises: Mapping[FileGroupId, list[LogPromise]], replaced: Container[FileGroupId], order: Order
) -> list[ExpectedFile]:
    listed = {piece.group: (piece.base_instant, {log.name for log in piece.log_files}) for piece in slices}
    return [
        ExpectedFile(group, promise.instant_time, promise.path)
        for group, written in promises.items()
        if group not in replaced
        for promise in written
        if _lacks(listed.get(group), promise, order)
    ]


def _lacks(listed: tuple[str, Container[str]] | None, promise: LogPromise, order: Order) -> bool:
    """`listed`: the base instant of the group's slice, and the names of its logs."""
    if listed is None:
        return True
    base_instant, names = listed
    partition, _, name = promise.path.rpartition("/")
    # Logs of an older slice are in the base file of this one.
    return name not in names and not is_later(base_instant, order.moment(parse_log_file(partition, name).base_instant))


def _is_base(path: str) -> bool:
    return is_base_file_name(path.rpartition("/")[2])


def _expected(
    state: TableState, as_of: str | None, writes: Sequence[_Write], partitions: frozenset[str] | None
) -> dict[FileGroupId, ExpectedFile]:
    archived = _archived(state, as_of)
    expected = {
        group: ExpectedFile(group, live.base.instant_time, live.base.path)
        for group, live in archived.live.within(partitions)
        if live.base is not None
    }
    born: set[FileGroupId] = set()
    pending = state.timeline.pending_compactions
    for instant, metadata in writes:
        if as_of is None or state.order.is_visible(instant.requested_time, as_of):
            if is_later(instant.requested_time, archived.boundary):
                expected.update((file.group, file) for file in _written(state, instant, partitions))
            continue
        for group, previous in _previous(metadata):
            if previous in pending or _is_outside(group, partitions):
                continue  # the slice to be says nothing about the one before it
            if previous in NO_COMMIT or not state.order.is_visible(str(previous), as_of):
                born.add(group)
            elif group not in expected and group not in born:
                expected[group] = ExpectedFile(group, str(previous), f"the base file of {group.file_id} written by {previous}")
        for group in replaced_groups(metadata):
            if group not in expected and group not in born and not _is_outside(group, partitions):
                expected[group] = ExpectedFile(group, "", f"the base file of {group.file_id}, replaced by {instant.requested_time},")
    return expected


def _is_outside(group: FileGroupId, partitions: frozenset[str] | None) -> bool:
    return partitions is not None and group.partition_path not in partitions


def _archived(state: TableState, as_of: str | None) -> ArchivedFiles:
    """What archived writes up to `as_of` left; nothing is known of it where some are after it, and no savepoint is on it.

    Of a savepoint always what was kept of it, if that was: a compaction that it was made beside may be archived since, with a time before
    its own. What that compaction was made of is live no more, and the savepoint reads it.
    """
    found = state.archived_files()
    if as_of is None:
        return found
    kept, is_last = state.savepointed_files(as_of), not is_later(found.boundary, as_of)
    if is_last and (kept is None or not kept.partitions()):
        return found
    if kept is None:
        return ArchivedFiles(LiveFiles(), is_known=False, all_told=False)
    return ArchivedFiles(kept, as_of, told_to=found.told_to if is_last else "", all_told=False)


def _writes(state: TableState) -> Iterator[_Write]:
    """Completed writes in order. Savepointed ones that outlived the archival of later ones prove nothing about now."""
    since = proven_since(state)
    for instant in state.timeline.completed().writes().instants:
        if not is_later(since, instant.requested_time):
            yield instant, state.commit_metadata(instant)


def _written(state: TableState, instant: Instant, partitions: frozenset[str] | None) -> Iterator[ExpectedFile]:
    for group, file in state.write_record(instant).files_in(partitions):
        if not file.is_log:
            yield ExpectedFile(group, instant.requested_time, file.path)


def _previous(metadata: HoodieCommitMetadata) -> Iterator[tuple[FileGroupId, str | None]]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id:
                yield FileGroupId(partition, stat.file_id), stat.prev_commit


def proven_since(state: TableState) -> str:
    """The instant time from which on the active timeline has every write; "" when nothing was ever archived."""
    start = state.timeline.start
    return start.requested_time if start is not None and state.has_archive else ""


@dataclass(frozen=True, slots=True)
class ChangedSize:
    """A file of the table that has other bytes than were written: `size` are there, `written` were recorded by `instant_time`."""

    path: str
    instant_time: str
    size: int
    written: int
    is_log: bool


def changed_sizes(state: TableState, as_of: str | None, slices: Sequence[FileSlice], *, logs: bool = False) -> list[ChangedSize]:
    """Base files of `slices` (as listed) whose size is another one than their commit recorded, and with `logs` logs that are too short.

    A log may be longer: other writers leave blocks of failed writes at its end.
    """
    partitions = partitions_of(slices)
    written = {file.path: file for _, file in _bases(state, as_of, partitions)}
    bases = [(piece.base_file, written.get(piece.base_file.path)) for piece in slices if piece.base_file is not None]
    found = [
        ChangedSize(base.path, file.instant_time, base.size, file.size, False)
        for base, file in bases
        if file is not None and file.size > 0 and base.size >= 0 and base.size != file.size
    ]
    if not logs or not any(piece.log_files for piece in slices):
        return found
    promises = log_promises(state, as_of, partitions)
    sizes = {log.path: log.size for piece in slices for log in piece.log_files}
    return found + [
        ChangedSize(promise.path, promise.instant_time, sizes[promise.path], promise.end, True)
        for piece in slices
        for promise in promises.get(piece.group, ())
        if promise.path in sizes and 0 <= sizes[promise.path] < promise.end
    ]


def _bases(state: TableState, as_of: str | None, partitions: frozenset[str]) -> Iterator[tuple[FileGroupId, WrittenFile]]:
    for group, live in _archived(state, as_of).live.within(partitions):
        if live.base is not None:
            yield group, live.base
    for write in state.active_writes(as_of):
        yield from ((group, file) for group, file in write.files_in(partitions) if not file.is_log)


def earliest_readable(state: TableState, after: str, *, logs: bool) -> str | None:
    """The moment of the first completed write after the moment `after` as of which every file is there; None where there is none."""
    since = proven_since(state)
    for instant in state.timeline.completed().writes().after(after).instants:
        moment = state.order.moment(instant.requested_time)
        if not is_later(since, instant.requested_time) and not lost_files(state, moment, state.view.slices_as_of(moment), logs=logs):
            return moment
    return None


def pinned_slices(state: TableState, moment: str) -> list[FileSlice] | None:
    """The slices that a savepoint of the write of exactly this moment keeps, which are the table as of it; None without such a savepoint.

    What became of compactions since then does not matter: a group is the newest base file that is pinned, with every pinned log on top
    of it. Raises `MissingFileError` when one of their files is gone.
    """
    instant_time = state.timeline.savepoint_at(moment)
    if instant_time is None:
        return None
    record = _record(state, Instant(instant_time, Action.SAVEPOINT, State.COMPLETED), "HoodieSavepointMetadata")
    slices: list[FileSlice] = []
    for partition, pins in record["partitionMetadata"].items():
        names = [name for name in pins["savepointDataFile"] if not is_of_later_write(state, instant_time, name)]
        found = [_pinned(state, join_path(partition, name)) for name in names]
        slices += [with_base(state, piece) for piece in whole_slices(partition, found)]
    return slices


def _pinned(state: TableState, path: str) -> StoredFile:
    entry = state.storage.head(path)
    if entry is None:
        raise missing_file(path, "a savepoint should have kept it")
    return entry


def removed_by(state: TableState, path: str) -> str | None:
    """The time of the clean on the active timeline that says it deleted the file at `path`, None where none does."""
    partition, _, name = path.rpartition("/")
    for instant in reversed(state.timeline.completed().instants):
        if instant.action is Action.CLEAN:
            cleaned = _record(state, instant, "HoodieCleanMetadata")["partitionMetadata"].get(partition)
            if cleaned is not None and name in (deleted.rpartition("/")[2] for deleted in cleaned["successDeleteFiles"]):
                return instant.requested_time
    return None


def _record(state: TableState, instant: Instant, schema_name: str) -> dict[str, Any]:
    return decode_record(schema_name, state.storage.read(state.active.path(instant)))
