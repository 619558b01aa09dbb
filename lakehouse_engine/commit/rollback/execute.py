"""Carry a rollback out: the same steps whether it is new or resumed after a crash, each of which may have happened already.

 1. have participants let go of the instant; delete the data files that the plan names, and metafiles of its instant that hide other
    partitions
 2. write rollback blocks to the slices whose log files stay
 3. delete the rolled-back instant's inflight and requested files, so that it is gone from the timeline
 4. complete the rollback instant with what was done
 5. delete the rolled-back instant's markers, and its heartbeat
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping

from lakehouse_engine.commit.completing import complete
from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.commit.deletion import delete_files_of
from lakehouse_engine.commit.heartbeat import beating, remove_heartbeat
from lakehouse_engine.commit.participants import take_back_all
from lakehouse_engine.commit.rollback.blocks import slice_logs, write_rollback_blocks
from lakehouse_engine.commit.rollback.intruders import remove_intruders
from lakehouse_engine.commit.rollback.markers import marked_files
from lakehouse_engine.errors import RollbackError, StorageError
from lakehouse_engine.format.file_names import marker_folder, parse_log_file
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import (
    HoodieInstantInfo,
    HoodieRollbackMetadata,
    HoodieRollbackPartitionMetadata,
    HoodieRollbackPlan,
    HoodieRollbackRequest,
)
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.timeline.restores import rollback_note
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

Slice = tuple[FileGroupId, str]
"""A file group and a base instant."""


def execute_rollback(state: TableState, rollback: Instant, plan: HoodieRollbackPlan) -> HoodieRollbackMetadata:
    """Run `plan` under the pending instant `rollback`. The table lock is held, and the instant is not published (any more).

    The rollback has a heartbeat meanwhile, which distinguishes it from Hudi's, which may be alive without one.
    """
    target = plan.instant_to_rollback
    if target is None:
        raise RollbackError("the rollback plan names no instant", instant=rollback, table=state.config.name)
    with beating(state.storage, rollback.requested_time, lock_options(state.config)):
        metadata = _execute(state, rollback, plan, target)
    try:
        if state.format.writers_at_once:
            _remove_late(state.storage, target.commit_time)
        state.storage.delete_tree(marker_folder(target.commit_time))
        remove_heartbeat(state.storage, target.commit_time)
    except StorageError as error:
        logger.warning("%s is completed, but markers could not be removed (%s); the next change of the table does", rollback, error)
    return metadata


def _remove_late(storage: Storage, instant_time: str) -> None:
    """Delete what a writer made since the rollback was planned: it may be alive, and have been late with its heartbeat (docs/adr/0064).

    Its instant is not requested any more, so it cannot open it to attempts again.
    """
    close_to_attempts(storage, instant_time)
    delete_files_of(storage, instant_time, marked_files(storage, instant_time))


def _execute(state: TableState, rollback: Instant, plan: HoodieRollbackPlan, target: HoodieInstantInfo) -> HoodieRollbackMetadata:
    began = time.monotonic()
    timeline = state.active
    take_back_all(state, [target.commit_time])
    deleted = _delete(state, plan, target.commit_time)
    blocks = _write_blocks(state, plan, rollback.requested_time, target.commit_time)
    partitions = [request.partition_path for request in plan.rollback_requests or ()]
    remove_intruders(state.storage, partitions, lambda time: time == target.commit_time)
    timeline.delete_pending(Instant(target.commit_time, Action(target.action), State.INFLIGHT))
    inflight = rollback if rollback.state is State.INFLIGHT else timeline.to_inflight(rollback)
    metadata = HoodieRollbackMetadata(
        start_rollback_time=rollback.requested_time,
        time_taken_in_millis=int((time.monotonic() - began) * 1000),
        total_files_deleted=len(deleted),
        commits_rollback=(target.commit_time,),
        partition_metadata=_by_partition(state.storage, plan, deleted, blocks),
        instants_rollback=(target,),
    )
    # Readers ask the outcome first, and it remains if the plan is lost.
    complete(state, inflight, metadata, encode_plan(metadata, note=rollback_note(timeline, inflight)))
    return metadata


def files_to_delete(plan: HoodieRollbackPlan) -> list[str]:
    """Paths relative to the table. A plan's absolute paths are from the table's place at planning; only partition and name count, so that a
    copied table does not delete the original's files.
    """
    return [path for request in plan.rollback_requests or () for path in _deletions(request)]


def slices_to_block(plan: HoodieRollbackPlan) -> list[Slice]:
    """Slices that get a rollback block, each once."""
    slices = [piece for request in plan.rollback_requests or () for piece in _blocked(request)]
    return list(dict.fromkeys(slices))


def _deletions(request: HoodieRollbackRequest) -> list[str]:
    return [join_path(request.partition_path, path.rpartition("/")[2]) for path in request.files_to_be_deleted]


def _blocked(request: HoodieRollbackRequest) -> list[Slice]:
    """By file id and base instant: the keys in the map of log files differ by Hudi's strategies (hudi-format 2.4)."""
    if not request.log_blocks_to_be_deleted:
        return []
    if request.file_id and request.latest_base_instant:
        return [(FileGroupId(request.partition_path, request.file_id), request.latest_base_instant)]
    logs = [parse_log_file(request.partition_path, path.rpartition("/")[2]) for path in request.log_blocks_to_be_deleted]
    return [(FileGroupId(log.partition_path, log.file_id), log.instant_time) for log in logs]


def _delete(state: TableState, plan: HoodieRollbackPlan, instant_time: str) -> list[str]:
    paths = files_to_delete(plan)
    delete_files_of(state.storage, instant_time, paths)
    return paths


def _write_blocks(state: TableState, plan: HoodieRollbackPlan, rollback_time: str, target: str) -> dict[str, int]:
    """Path and size of every file with rollback blocks.

    A slice without logs needs none: a dead restore of Hudi's left its rollbacks pending, and the restore was finished first. Hudi would
    take a lone file with a block for the group's newest log.
    """
    slices = [(group, base) for group, base in slices_to_block(plan) if slice_logs(state.storage, group, base)]
    return dict(write_rollback_blocks(state.storage, group, base, rollback_time, [target]) for group, base in slices)


def _by_partition(
    storage: Storage, plan: HoodieRollbackPlan, deleted: Iterable[str], blocks: Mapping[str, int]
) -> dict[str, HoodieRollbackPartitionMetadata]:
    logged: dict[str, dict[str, int]] = {}
    for request in plan.rollback_requests or ():
        logged.setdefault(request.partition_path, {}).update(request.log_blocks_to_be_deleted or {})
    return {
        partition: partition_metadata(
            storage,
            partition,
            [path for path in deleted if path.rpartition("/")[0] == partition],
            {path: size for path, size in blocks.items() if path.rpartition("/")[0] == partition},
            found,
        )
        for partition, found in logged.items()
    }


def partition_metadata(
    storage: Storage, partition: str, deleted: Iterable[str], blocks: Mapping[str, int], logged: Mapping[str, int]
) -> HoodieRollbackPartitionMetadata:
    """In Hudi's form: deleted files by absolute path, rollback block files as Hadoop prints their URIs."""
    return HoodieRollbackPartitionMetadata(
        partition_path=partition,
        success_delete_files=tuple(f"{storage.root}/{path}" for path in deleted),
        rollback_log_files={hadoop_path(storage, path): size for path, size in blocks.items()},
        log_files_from_failed_commit=dict(logged),
    )


def hadoop_path(storage: Storage, path: str) -> str:
    """URI of a file as Java's `Path` prints it: `file:/t/p`, not `file:///t/p`."""
    return storage.uri(path).replace("file:///", "file:/", 1)


def relative_paths(metadata: HoodieRollbackMetadata) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths, relative to the table, of deleted files and of those with rollback blocks."""
    parts = sorted(metadata.partition_metadata.items())
    deleted = [join_path(part, path.rpartition("/")[2]) for part, entry in parts for path in entry.success_delete_files]
    blocks = [join_path(part, path.rpartition("/")[2]) for part, entry in parts for path in entry.rollback_log_files or {}]
    return tuple(deleted), tuple(blocks)

