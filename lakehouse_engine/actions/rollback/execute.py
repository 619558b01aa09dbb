"""Carry a rollback out: the same steps whether it is new or resumed after a crash, each of which may have happened already.

 1. delete the data files that the plan names
 2. delete the rolled-back instant's inflight and requested files, so that it is gone from the timeline
 3. complete the rollback instant with what was deleted
 4. delete the rolled-back instant's markers
"""

from __future__ import annotations

import time

from lakehouse_engine.actions.deletion import delete_files_of
from lakehouse_engine.errors import RollbackError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.format.plans_codec import encode_plan
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRollbackMetadata, HoodieRollbackPartitionMetadata, HoodieRollbackPlan
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState


def execute_rollback(state: TableState, rollback: Instant, plan: HoodieRollbackPlan) -> None:
    """Carry out `plan` under the pending instant `rollback`. The table lock is held."""
    target = plan.instant_to_rollback
    if target is None:
        raise RollbackError("the rollback plan names no instant", instant=rollback, table=state.config.name)
    began = time.monotonic()
    timeline = ActiveTimeline(state.storage, state.layout)
    deleted = _delete(state, plan, target.commit_time)
    timeline.delete_pending(Instant(target.commit_time, Action(target.action), State.INFLIGHT))
    inflight = rollback if rollback.state is State.INFLIGHT else timeline.to_inflight(rollback)
    metadata = HoodieRollbackMetadata(
        start_rollback_time=rollback.requested_time,
        time_taken_in_millis=int((time.monotonic() - began) * 1000),
        total_files_deleted=sum(len(part.success_delete_files) for part in deleted.values()),
        commits_rollback=(target.commit_time,),
        partition_metadata=deleted,
        instants_rollback=(target,),
    )
    timeline.complete(inflight, encode_plan(metadata))
    state.storage.delete_tree(marker_folder(target.commit_time))


def _delete(state: TableState, plan: HoodieRollbackPlan, instant_time: str) -> dict[str, HoodieRollbackPartitionMetadata]:
    """Delete the plan's files; the metadata by partition. Paths in a plan are absolute, and hold where the table was when it was
    made: partition and name are what counts, so that a copied table does not delete the original's files.
    """
    by_partition: dict[str, list[str]] = {}
    for request in plan.rollback_requests or ():
        names = [path.rsplit("/", 1)[-1] for path in request.files_to_be_deleted]
        by_partition.setdefault(request.partition_path, []).extend(join_path(request.partition_path, name) for name in names)
    delete_files_of(state.storage, instant_time, [path for paths in by_partition.values() for path in paths])
    return {
        partition: HoodieRollbackPartitionMetadata(
            partition_path=partition,
            success_delete_files=tuple(state.storage.uri(path) for path in paths),
            rollback_log_files={},
            log_files_from_failed_commit={},
        )
        for partition, paths in by_partition.items()
    }
