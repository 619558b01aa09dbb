"""What has to be deleted to take an instant back.

The instant's markers say which files it began to write. Where the marker folder is gone Hudi plans nothing and leaves orphans
(hudi-format 10.2); here the partitions are listed for files of that instant instead.
"""

from __future__ import annotations

from lakehouse_engine.actions.rollback.markers import has_markers, marked_files
from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRollbackPlan, HoodieRollbackRequest
from lakehouse_engine.view.listing import StorageLister
from lakehouse_engine.view.table_state import TableState


def plan_rollback(state: TableState, instant: Instant) -> HoodieRollbackPlan:
    """The plan to take back a pending write of a copy-on-write table."""
    if instant.action.completes_as is Action.DELTA_COMMIT:
        raise UnsupportedTableError("delta commits cannot be rolled back yet", instant=instant, table=state.config.name)
    time = instant.requested_time
    paths = marked_files(state.storage, time) if has_markers(state.storage, time) else _listed(state, time)
    requests = tuple(_request(state, path) for path in paths)
    target = HoodieInstantInfo(commit_time=time, action=str(instant.action))
    return HoodieRollbackPlan(instant_to_rollback=target, rollback_requests=requests)


def _request(state: TableState, path: str) -> HoodieRollbackRequest:
    partition, _, name = path.rpartition("/")
    file = _parse(partition, name)
    latest = file.base_instant if isinstance(file, LogFile) else file.instant_time
    return HoodieRollbackRequest(
        partition_path=partition,
        file_id=file.file_id,
        latest_base_instant=latest,
        files_to_be_deleted=(f"{state.storage.root}/{path}",),
        log_blocks_to_be_deleted={},
    )


def _parse(partition: str, name: str) -> BaseFile | LogFile:
    return parse_base_file(partition, name) if is_base_file_name(name) else parse_log_file(partition, name)


def _listed(state: TableState, time: str) -> list[str]:
    lister = StorageLister(state.storage)
    found = []
    for partition in lister.partitions():
        for entry in lister.files(partition):
            if is_base_file_name(entry.name) or is_log_file_name(entry.name):
                file = _parse(partition, entry.name)
                if time == (file.base_instant if isinstance(file, LogFile) else file.instant_time):
                    found.append(file.path)
    return sorted(found)
