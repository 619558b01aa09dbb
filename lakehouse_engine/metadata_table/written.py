"""What a metadata table must have on storage, told by its own commits: the last compaction, and every delta commit that it lacks.

A listing does not show that a log file is gone, or an old copy of a folder put back: the records of that commit are then missing without a
word, and a record index would take a stored key for a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from lakehouse_engine.errors import FormatError, StoredFileNotFoundError
from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.format.partition_metafile import parse_partition_metafile
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.live_files import WrittenFile
from lakehouse_engine.model.logged import LogPromise
from lakehouse_engine.view.table_state import TableState

WAY_OUT = "build the metadata table again (`lakehouse metadata rebuild`), or drop it (`lakehouse metadata drop`)"


def unmerged(metadata: TableState) -> list[Instant]:
    """Completed delta commits that the last completed compaction does not include, in time order; all of them before the first one.

    What they logged is in no base file yet (`view.slicing.slice_of`).
    """
    done = metadata.timeline.completed()
    compactions = [one.requested_time for one in done if one.action is Action.COMMIT]
    written = done.filter(lambda one: one.action is Action.DELTA_COMMIT)
    return list(written.newer_than(compactions[-1]) if compactions else written)


def log_promises(metadata: TableState) -> Mapping[str, list[LogPromise]]:
    """What the delta commits of `unmerged` wrote to log files, by path. Raises `CorruptInstantError` for a damaged one."""
    found: dict[str, list[LogPromise]] = {}
    for instant in unmerged(metadata):
        for _, file in metadata.write_record(instant).files_in(None):
            if file.is_log:
                promise = LogPromise(file.path, file.instant_time, file.start, file.size, file.checksum)
                found.setdefault(file.path, []).append(promise)
    return found


def check_whole(metadata: TableState, partition: str, pending: Collection[str] = ()) -> None:
    """Raise `MissingFileError` if a file of the partition is gone, and `FormatError` if one is shorter than it was written.

    Looked for is what the last compaction wrote and what was written since, but for instants that are `pending` in the data table: those
    may be about to be taken back. A partition that was built again since has other files.
    """
    there = dict(_sizes(metadata, partition))
    lacking = [file for file in _written(metadata, partition, pending) if there.get(file.path, -1) < file.size]
    built = built_at(metadata, partition) if lacking else ""
    for file in lacking:
        if metadata.order.is_after(built, file.instant_time):
            continue
        if file.path not in there:
            raise missing_file(file.path, WAY_OUT, instant=file.instant_time)
        raise FormatError(
            f"the file {file.path!r} of the metadata table has {there[file.path]} bytes, and {file.instant_time} wrote"
            f" {file.size}: {WAY_OUT}",
            path=file.path,
            instant=file.instant_time,
        )


def _sizes(metadata: TableState, partition: str) -> Iterator[tuple[str, int]]:
    for group in metadata.view.file_groups(partition):
        for piece in group.slices:
            if piece.base_file is not None:
                yield piece.base_file.path, piece.base_file.size
            yield from ((log.path, log.size) for log in piece.log_files)


def _written(metadata: TableState, partition: str, pending: Collection[str]) -> Iterator[WrittenFile]:
    compactions = [one for one in metadata.timeline.completed() if one.action is Action.COMMIT]
    for instant in (*compactions[-1:], *unmerged(metadata)):
        if instant.requested_time not in pending:
            yield from (file for _, file in metadata.write_record(instant).files_in(frozenset({partition})))


def built_at(metadata: TableState, partition: str) -> str:
    """The instant of a partition's build. Raises `MissingFileError` without its metafile."""
    path = join_path(partition, PARTITION_METAFILE)
    try:
        return parse_partition_metafile(metadata.storage.read(path))[0]
    except StoredFileNotFoundError as error:
        raise missing_file(path, WAY_OUT) from error
