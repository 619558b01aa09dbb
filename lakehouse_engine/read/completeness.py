"""Whether every file that a read needs is there.

The slices of a listing are the newest ones that are *left*: after a clean, a listing as of an old instant is silently short. What
must be there follows from the write stats of the active timeline, on both sides of the instant: the last write of a group up to it,
and `prevCommit` of the first write after it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_log_file
from lakehouse_engine.format.metadata_avro import decode_record
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice, join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.read.base_file import missing_file
from lakehouse_engine.read.log_scanner import LogPromise
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.view.slicing import pending_compactions, whole_slices
from lakehouse_engine.view.table_state import TableState

_NO_COMMIT = (None, "", "null")


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The base file, or a log file, that a group must have; `path` is a description where only the group and the instant are known."""

    group: FileGroupId
    instant_time: str
    path: str

    def __str__(self) -> str:
        return self.path


def lost_files(
    state: TableState, as_of: str | None, slices: Sequence[FileSlice], *, begin: str | None = None, logs: bool = False
) -> list[ExpectedFile]:
    """Base files, and with `logs` log files, that the groups live at `as_of` (None: now) must have and `slices`, the listed ones, do not.

    With `begin` only base files written after it count. Complete if no write after `as_of` has been archived.
    """
    # A slice may consist of logs only; its base instant is then that of the write that began it.
    found = {piece.group: piece.base_instant for piece in slices if piece.base_file is not None or logs}
    replaced = state.view.replaced_as_of(as_of)
    expected = _expected(state, as_of)
    # Of others the base file was written, and what is left of them is only what was logged later.
    begun = {piece.group: piece.base_instant for piece in slices if piece.base_file is None}
    headless = {file.path for group, file in expected.items() if _is_base(file.path) and begun.get(group) == file.instant_time}
    lost = [
        file
        for group, file in expected.items()
        if group not in replaced
        and (found.get(group, "") < (file.instant_time or "0") or file.path in headless)
        and (begin is None or _after(file, begin))
    ]
    return lost + (_lost_logs(slices, log_promises(state, as_of), replaced) if logs and not lost else [])


def log_promises(state: TableState, as_of: str | None) -> dict[FileGroupId, list[LogPromise]]:
    """What completed commits on the active timeline, not after `as_of`, wrote to log files; nothing for copy-on-write tables."""
    promises: dict[FileGroupId, list[LogPromise]] = {}
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return promises
    for instant in state.timeline.completed().writes():
        if as_of is None or instant.requested_time <= as_of:
            metadata = state.commit_metadata(instant)
            checksums = metadata.log_checksums()
            for partition, stats in metadata.partition_to_write_stats.items():
                for stat in stats:
                    if stat.file_id and stat.path and is_log_file_name(stat.path.rpartition("/")[2]):
                        start, checksum = max(stat.log_offset or 0, 0), checksums.get(stat.path)
                        promise = LogPromise(stat.path, instant.requested_time, start, stat.file_size_in_bytes, checksum)
                        promises.setdefault(FileGroupId(partition, stat.file_id), []).append(promise)
    return promises


def _lost_logs(
    slices: Sequence[FileSlice], promises: Mapping[FileGroupId, Sequence[LogPromise]], replaced: Container[FileGroupId]
) -> list[ExpectedFile]:
    listed = {piece.group: piece for piece in slices}
    return [
        ExpectedFile(group, promise.instant_time, promise.path)
        for group, written in promises.items()
        if group not in replaced
        for promise in written
        if _lacks(listed.get(group), promise)
    ]


def _lacks(piece: FileSlice | None, promise: LogPromise) -> bool:
    if piece is None:
        return True
    partition, _, name = promise.path.rpartition("/")
    # Logs of an older slice are in the base file of this one.
    return parse_log_file(partition, name).base_instant >= piece.base_instant and name not in {log.name for log in piece.log_files}


def _is_base(path: str) -> bool:
    return is_base_file_name(path.rpartition("/")[2])


def _after(file: ExpectedFile, begin: str) -> bool:
    return not file.instant_time or file.instant_time > begin


def _expected(state: TableState, as_of: str | None) -> dict[FileGroupId, ExpectedFile]:
    expected: dict[FileGroupId, ExpectedFile] = {}
    born: set[FileGroupId] = set()
    pending = pending_compactions(state.timeline)
    for instant, metadata in _writes(state):
        if as_of is None or instant.requested_time <= as_of:
            expected.update((file.group, file) for file in _written(instant, metadata))
            continue
        for group, previous in _previous(metadata):
            if previous in pending:
                continue  # the slice to be says nothing about the one before it
            if previous in _NO_COMMIT or str(previous) > as_of:
                born.add(group)
            elif group not in expected and group not in born:
                expected[group] = ExpectedFile(group, str(previous), f"the base file of {group.file_id} written by {previous}")
        for group in _replaced(metadata):
            if group not in expected and group not in born:
                expected[group] = ExpectedFile(group, "", f"the base file of {group.file_id}, replaced by {instant.requested_time},")
    return expected


def _writes(state: TableState) -> Iterator[tuple[Instant, HoodieCommitMetadata]]:
    """Completed writes in order. Savepointed ones that outlived the archival of later ones prove nothing about now."""
    since = proven_since(state)
    for instant in state.timeline.completed().writes().instants:
        if instant.requested_time >= since:
            yield instant, state.commit_metadata(instant)


def _written(instant: Instant, metadata: HoodieCommitMetadata) -> Iterator[ExpectedFile]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id and stat.path and _is_base(stat.path):
                yield ExpectedFile(FileGroupId(partition, stat.file_id), instant.requested_time, stat.path)


def _previous(metadata: HoodieCommitMetadata) -> Iterator[tuple[FileGroupId, str | None]]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id:
                yield FileGroupId(partition, stat.file_id), stat.prev_commit


def _replaced(metadata: HoodieCommitMetadata) -> Iterable[FileGroupId]:
    replaced = metadata.partition_to_replace_file_ids or {}
    return [FileGroupId(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids]


def proven_since(state: TableState) -> str:
    """The instant time from which on the active timeline has every write; "" when nothing was ever archived."""
    folder = f"{state.layout.timeline_folder}/{state.config.archive_folder}"
    start = state.timeline.start
    if start is None or all(entry.is_directory for entry in state.storage.list(folder)):
        return ""
    return start.requested_time


def earliest_readable(state: TableState, after: str, *, logs: bool) -> str | None:
    """The first completed write after the instant time `after` as of which every file is there; None where there is none."""
    since = proven_since(state)
    for instant in state.timeline.completed().writes().instants:
        time = instant.requested_time
        if time > after and time >= since and not lost_files(state, time, state.view.slices_as_of(time), logs=logs):
            return time
    return None


def pinned_slices(state: TableState, instant_time: str) -> list[FileSlice] | None:
    """The slices that a savepoint of exactly this instant keeps, which are the table as of it; None without such a savepoint.

    What became of compactions since then does not matter: a group is the newest base file that is pinned, with every pinned log on top
    of it. Raises `MissingFileError` when one of their files is gone.
    """
    if instant_time not in state.timeline.savepointed:
        return None
    record = _record(state, Instant(instant_time, Action.SAVEPOINT, State.COMPLETED), "HoodieSavepointMetadata")
    slices: list[FileSlice] = []
    for partition, pins in record["partitionMetadata"].items():
        found = [_pinned(state, join_path(partition, name)) for name in pins["savepointDataFile"]]
        slices += [_with_base(state, piece) for piece in whole_slices(partition, found)]
    return slices


def _with_base(state: TableState, piece: FileSlice) -> FileSlice:
    """Hudi pins of a group with a pending compaction only the logs on it: below them is what the compaction made."""
    if piece.base_file is not None:
        return piece
    group = next((one for one in state.view.file_groups(piece.partition_path) if one.group == piece.group), None)
    made = next((one.base_file for one in group.slices if one.base_instant == piece.base_instant), None) if group else None
    if made is None and _is_compaction(state, piece.base_instant):
        path = f"the base file of {piece.file_id} written by {piece.base_instant}"
        raise missing_file(path, "logs that a savepoint keeps are on top of it", instant=piece.base_instant)
    return replace(piece, base_file=made)


def _is_compaction(state: TableState, instant_time: str) -> bool:
    """Whether the instant made base files of logs; writes that only log begin slices as well."""
    found = state.timeline.find(instant_time)
    archived = () if found else ArchivedTimeline(state.storage, state.layout, state.config.archive_folder).instants()
    known = [found] if found else [instant for instant in archived if instant.requested_time == instant_time]
    return any(instant.is_completed and instant.action is Action.COMMIT for instant in known)


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
    path = f"{state.layout.timeline_folder}/{state.layout.file_name(instant)}"
    return decode_record(schema_name, state.storage.read(path))
