"""Plans what to delete, or take back with a rollback block, to remove an instant.

A completed instant's write stats say what it wrote. A pending one's markers say which files it began. Without a marker folder Hudi plans
nothing and leaves orphans (hudi-format 10.2); here the partitions are listed for files of the instant, and log files are searched for its
blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakehouse_engine.commit.leftovers.log_owners import find_log_owners
from lakehouse_engine.commit.rollback.blocks import group_logs, listed_logs
from lakehouse_engine.commit.rollback.markers import has_markers, markers_of
from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.file_names import MarkerType, is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRollbackPlan, HoodieRollbackRequest
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


def plan_rollback(state: TableState, instant: Instant) -> HoodieRollbackPlan:
    """Plan to take back a write or compaction, pending or completed.

    A log file is deleted if no other write has rows in it and no savepoint pins it; otherwise its slice gets a rollback block.
    """
    time = instant.requested_time
    pinned = protected_files(state)
    files = sorted(_written(state, instant), key=lambda file: file.path)
    requests = tuple(request for file in files if (request := _request(state, file, time, pinned)) is not None)
    target = HoodieInstantInfo(commit_time=time, action=str(instant.action))
    return HoodieRollbackPlan(instant_to_rollback=target, rollback_requests=requests)


def _written(state: TableState, instant: Instant) -> set[BaseFile | LogFile]:
    if instant.is_completed:
        return set(_recorded(state, instant)) | set(_marked(state, instant.requested_time))
    if has_markers(state.storage, instant.requested_time):
        return set(_marked(state, instant.requested_time))
    return set(_listed(state, instant.requested_time))


def _recorded(state: TableState, instant: Instant) -> Iterator[BaseFile | LogFile]:
    for stat in state.commit_metadata(instant).write_stats():
        yield from _parsed([*([stat.path] if stat.path else []), *(stat.cdc_stats or {})])


def _marked(state: TableState, time: str) -> Iterator[BaseFile | LogFile]:
    for path, kind in markers_of(state.storage, time):
        for file in _parsed([path]):
            yield file
            if kind is MarkerType.APPEND:
                # Hudi before 0.15 has one marker for all log files of an append.
                yield from _logged(state, group_logs(state.storage, FileGroupId(file.partition_path, file.file_id)), time)


def _listed(state: TableState, time: str) -> Iterator[BaseFile | LogFile]:
    lister = StorageLister(state.storage)
    for partition in state.view.partitions():
        found = _parsed(entry.path for entry in lister.files(partition))
        yield from (file for file in found if isinstance(file, BaseFile) and file.instant_time == time)
        yield from _logged(state, listed_logs(state.storage, partition), time)


def _logged(state: TableState, logs: Iterable[LogFile], time: str) -> Iterator[LogFile]:
    """Log files with a block of that instant. No block of a slice is older than the slice."""
    for log in logs:
        if not is_later(log.instant_time, time) and (owners := find_log_owners(state.storage, log)) is not None and time in owners.writers:
            yield log


def _parsed(paths: Iterable[str]) -> Iterator[BaseFile | LogFile]:
    for path in paths:
        partition, _, name = path.rpartition("/")
        if is_base_file_name(name):
            yield parse_base_file(partition, name)
        elif is_log_file_name(name):
            yield parse_log_file(partition, name)


def _request(state: TableState, file: BaseFile | LogFile, time: str, pinned: dict[str, str]) -> HoodieRollbackRequest | None:
    if isinstance(file, BaseFile):
        if file.instant_time != time:
            raise FileNameError(f"{time} cannot have written {file.path!r}", path=file.path, instant=time)
        return _deletion(state, file, time)
    owners = find_log_owners(state.storage, file)
    if owners is None:
        return None
    if owners.only(time) and file.path not in pinned:
        return _deletion(state, file, file.instant_time)
    return _block(state, file) if time in owners.writers else None


def _deletion(state: TableState, file: BaseFile | LogFile, base_instant: str) -> HoodieRollbackRequest:
    return HoodieRollbackRequest(
        partition_path=file.partition_path,
        file_id=file.file_id,
        latest_base_instant=base_instant,
        files_to_be_deleted=(f"{state.storage.root}/{file.path}",),
        log_blocks_to_be_deleted={},
    )


def _block(state: TableState, log: LogFile) -> HoodieRollbackRequest:
    entry = state.storage.head(log.path)
    return HoodieRollbackRequest(
        partition_path=log.partition_path,
        file_id=log.file_id,
        latest_base_instant=log.instant_time,
        log_blocks_to_be_deleted={log.name: entry.size if entry else 0},
    )
