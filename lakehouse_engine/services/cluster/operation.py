"""Plans clusterings, and runs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.format.file_names import parse_base_file
from lakehouse_engine.model.instant import State
from lakehouse_engine.model.plans import HoodieClusteringGroup, HoodieRequestedReplaceMetadata
from lakehouse_engine.model.services import ClusteringResult
from lakehouse_engine.options import ClusteringOptions, WriteOptions
from lakehouse_engine.services.cluster.clustering import Clustering
from lakehouse_engine.services.cluster.fitting import groups_of, read_plan
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.cluster.skipping import opened
from lakehouse_engine.services.cluster.sorting import SortTask
from lakehouse_engine.services.executor import execution, scheduling
from lakehouse_engine.services.executor.execution import Done
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

_NOTHING, _PLANNED = "none", "planned"
"""`ClusteringResult.state` if there was nothing to do, and of a dry run; otherwise it is the instant's state."""


def schedule(
    storage: Storage,
    options: ClusteringOptions,
    write_options: WriteOptions,
    *,
    lock_timeout_ms: int,
    only: Iterable[str] | None = None,
    dry_run: bool = False,
    when_due: bool = False,
) -> ClusteringResult:
    """Plan a clustering under the table lock, at an instant after every write; `instant` is None if there is nothing to do.

    `only`: partition paths to look at. `when_due`: plan only if enough was committed. Raises `OptionError` for columns that have no order,
    `ClusteringError` for a missing partition and while an older write is pending, `MissingFileError` if files of the table are lost, and
    `UnsupportedTableError` for buckets of consistent hashing.
    """
    state = TableState.load(storage)
    service = Clustering.of(state.format, options, write_options, only=only, when_due=when_due)
    if dry_run:
        result = _planned(state, service.plan(state), None, _PLANNED, dry_run=True, left=service.groups(state).left)
        return replace(result, opened_before=_opened_before(state, result.groups, service.order(state)))
    # Beside Hudi's writers an automatic clustering does not wait: the next write tries again.
    patience = 0 if when_due else lock_timeout_ms
    scheduled = scheduling.schedule(service, storage, lock_timeout_ms=lock_timeout_ms, alone_ms=patience)
    if scheduled is None:
        return _planned(state, None)
    instant, plan = scheduled
    if when_due:
        return _planned(state, plan, instant.requested_time, str(instant.state))
    now = TableState.load(storage)
    rest = service.groups(now)
    return _planned(now, plan, instant.requested_time, str(instant.state), left=len(rest.groups) + rest.left)


def schedule_and_run(
    storage: Storage,
    options: ClusteringOptions,
    write_options: WriteOptions,
    runner: TaskRunner,
    *,
    lock_timeout_ms: int,
    only: Iterable[str] | None = None,
    dry_run: bool = False,
    when_due: bool = False,
) -> ClusteringResult:
    """Schedule a clustering and run it; with nothing left to schedule, run the oldest pending one. Raises as both."""
    planned = schedule(
        storage, options, write_options, lock_timeout_ms=lock_timeout_ms, only=only, dry_run=dry_run, when_due=when_due
    )
    if (dry_run and planned.groups) or (when_due and planned.instant is None):
        return planned
    done = run(storage, options, write_options, runner, instant=planned.instant, lock_timeout_ms=lock_timeout_ms, dry_run=dry_run)
    return replace(done, groups_left=planned.groups_left)


def run(
    storage: Storage,
    options: ClusteringOptions,
    write_options: WriteOptions,
    runner: TaskRunner,
    *,
    instant: str | None = None,
    lock_timeout_ms: int,
    dry_run: bool = False,
    wait: bool = True,
) -> ClusteringResult:
    """Run the pending clustering `instant`, or the oldest one; the result's `instant` is None if none is pending.

    Safe to call from a thread of a session or from another process while writers go on: file groups that they change are left out. Raises
    `ClusteringError` if `instant` is no pending clustering, another program may be running it, its plan was removed meanwhile (by a
    restore), or writers changed every group of it; `LockTimeoutError` if another executor runs it (at once without `wait`) or the table is
    locked when it begins; and what reading the slices raises. The table is then as it was.
    """
    state = TableState.load(storage)
    service = Clustering.of(state.format, options, write_options)
    chosen = scheduling.choose(service.kind, state, instant)
    if chosen is None:
        return _planned(state, None, dry_run=dry_run)
    if dry_run:
        return _planned(state, read_plan(state, chosen), chosen.requested_time, _PLANNED, dry_run=True)
    done = execution.run(service, state, chosen, runner, lock_timeout_ms=lock_timeout_ms, wait=wait)
    return _planned(state, None) if done is None else _completed(done)


def _planned(
    state: TableState,
    plan: HoodieRequestedReplaceMetadata | None,
    time: str | None = None,
    standing: str = _NOTHING,
    *,
    dry_run: bool = False,
    left: int = 0,
) -> ClusteringResult:
    """Result for a plan that has not been run."""
    groups = groups_of(plan) if plan else ()
    return ClusteringResult(
        instant=time,
        state=standing if groups else _NOTHING,
        groups=groups,
        bytes_read=_bytes(state, groups),
        groups_left=left,
        dry_run=dry_run,
    )


def _opened_before(state: TableState, groups: Iterable[HoodieClusteringGroup], order: SortOrder) -> dict[str, float]:
    planned = {(info.partition_path or "", info.file_id or "") for group in groups for info in group.slices or ()}
    slices = (piece for path in dict.fromkeys(path for path, _ in planned) for piece in state.view.latest_slices(path))
    bases = [piece.base_file for piece in slices if piece.base_file and (piece.partition_path, piece.file_id) in planned]
    return opened(state.storage, bases, order.columns)


def _bytes(state: TableState, groups: Iterable[HoodieClusteringGroup]) -> int:
    """Bytes of the slices that the groups name, as far as they are listed."""
    infos = [info for group in groups for info in group.slices or ()]
    paths = dict.fromkeys(info.partition_path or "" for info in infos)
    sizes = {(piece.partition_path, piece.file_id): piece.size for path in paths for piece in state.view.latest_slices(path)}
    return sum(sizes.get((info.partition_path or "", info.file_id or ""), 0) for info in infos)


def _completed(done: Done[HoodieRequestedReplaceMetadata, SortTask]) -> ClusteringResult:
    metadata, job = done.metadata, done.job
    stats = list(metadata.write_stats())
    replaced = metadata.partition_to_replace_file_ids or {}
    gone = {(path, file_id) for path, ids in replaced.items() for file_id in ids}
    groups = groups_of(job.plan)
    before = [one.slice.base_file for task in job.tasks for one in task.pieces if (task.partition_path, one.slice.file_id) in gone]
    after = [parse_base_file(stat.partition_path or "", (stat.path or "").rpartition("/")[2]) for stat in stats]
    columns, storage = job.tasks[0].order.columns, job.state.storage
    kept = tuple(group for group in groups if all((one.partition_path or "", one.file_id or "") in gone for one in group.slices or ()))
    return ClusteringResult(
        instant=job.requested.requested_time,
        state=str(State.COMPLETED),
        groups=kept,
        bytes_read=_bytes(job.state, kept),
        files_replaced=len(gone),
        files_created=len(stats),
        rows_written=sum(stat.num_writes for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        groups_lost=len(groups) - len(kept),
        opened_before=opened(storage, [base for base in before if base is not None], columns),
        opened_after=opened(storage, after, columns),
    )
