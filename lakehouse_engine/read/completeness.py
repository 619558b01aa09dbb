"""Whether every base file that a read needs is there.

The slices of a listing are the newest ones that are *left*: after a clean, a listing as of an old instant is silently short. What
must be there follows from the write stats of the active timeline, on both sides of the instant: the last write of a group up to it,
and `prevCommit` of the first write after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.format.metadata_avro import decode_record
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile, FileSlice, join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.base_file import missing_file
from lakehouse_engine.view.table_state import TableState

_NO_COMMIT = (None, "", "null")


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The base file that a group must have; `path` is a description where only the group and the instant are known."""

    group: FileGroupId
    instant_time: str
    path: str

    def __str__(self) -> str:
        return self.path


def lost_files(state: TableState, as_of: str | None, slices: Sequence[FileSlice], *, begin: str | None = None) -> list[ExpectedFile]:
    """Base files that the groups live at `as_of` (None: now) must have and that `slices`, the listed ones, do not.

    With `begin` only files written after it count. Complete if no write after `as_of` has been archived.
    """
    found = {piece.group: piece.base_file.instant_time for piece in slices if piece.base_file is not None}
    replaced = state.view.replaced_as_of(as_of)
    expected = _expected(state, as_of)
    return [
        file
        for group, file in expected.items()
        if group not in replaced and found.get(group, "") < (file.instant_time or "0") and (begin is None or _after(file, begin))
    ]


def _after(file: ExpectedFile, begin: str) -> bool:
    return not file.instant_time or file.instant_time > begin


def _expected(state: TableState, as_of: str | None) -> dict[FileGroupId, ExpectedFile]:
    expected: dict[FileGroupId, ExpectedFile] = {}
    born: set[FileGroupId] = set()
    for instant, metadata in _writes(state):
        if as_of is None or instant.requested_time <= as_of:
            expected.update((file.group, file) for file in _written(instant, metadata))
            continue
        for group, previous in _previous(metadata):
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
            if stat.file_id and stat.path and is_base_file_name(stat.path.rpartition("/")[2]):
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


def earliest_readable(state: TableState, after: str) -> str | None:
    """The first completed write after the instant time `after` as of which every base file is there; None where there is none."""
    since = proven_since(state)
    for instant in state.timeline.completed().writes().instants:
        time = instant.requested_time
        if time > after and time >= since and not lost_files(state, time, state.view.slices_as_of(time)):
            return time
    return None


def pinned_files(state: TableState, instant_time: str) -> tuple[BaseFile, ...] | None:
    """The base files that a savepoint of exactly this instant keeps, which are the table as of it; None without such a savepoint.

    Raises `MissingFileError` when one of them is gone.
    """
    if instant_time not in state.timeline.savepointed:
        return None
    record = _record(state, Instant(instant_time, Action.SAVEPOINT, State.COMPLETED), "HoodieSavepointMetadata")
    return tuple(_pinned(state, record["partitionMetadata"]))


def _pinned(state: TableState, partitions: dict[str, dict[str, list[str]]]) -> Iterator[BaseFile]:
    for partition, pins in partitions.items():
        for name in pins["savepointDataFile"]:
            if is_base_file_name(name):
                path = join_path(partition, name)
                entry = state.storage.head(path)
                if entry is None:
                    raise missing_file(path, "a savepoint should have kept it")
                yield parse_base_file(partition, name, entry.size)


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
