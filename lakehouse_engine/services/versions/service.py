"""`upgrade` and `downgrade`: bring a table to another version.

Like Hudi (`UpgradeDowngrade.performRollbackAndCompactionIfRequired`), this first rolls back dead writes and compacts. Then come the steps
of docs/adr/0063, all under the table's lock:

 1. a mark that a timeline of another layout is being made
 2. that timeline, whole and durable
 3. the properties, in one step: from here on the table has the new version
 4. the parts of the old version are removed, and the mark last

If the process dies in between, the next holder of the lock removes the timeline that does not match the properties.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from lakehouse_engine.commit.locked import check_nobody_committed, locked_table
from lakehouse_engine.commit.metadata_table import drop_metadata_table
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import VersionChange
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.services.archive.execute import finish_archiving
from lakehouse_engine.services.clean import finish_cleans
from lakehouse_engine.services.compact import run, schedule_and_run
from lakehouse_engine.services.compact.plan import compactable
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.versions.index_definitions import version_index_definitions
from lakehouse_engine.services.versions.new_timeline import new_timeline
from lakehouse_engine.services.versions.plan import PlannedChange, plan_change, steps_of, target_of
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.history import history_of
from lakehouse_engine.timeline.other_layout import OtherLayout, begin_moving
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compacting:
    """Inputs for compacting logs before a version changes."""

    options: CompactionOptions
    write_options: WriteOptions
    runner: TaskRunner

    @property
    def everything(self) -> CompactionOptions:
        """Options of a compaction that takes every slice with logs."""
        return replace(self.options, strategy="UnBoundedCompactionStrategy")


def change_version(
    storage: Storage, to: object, *, upgrade: bool, compacting: Compacting, lock_timeout_ms: int, dry_run: bool = False
) -> VersionChange:
    """Bring the table to version `to`, up if `upgrade`, else down. Does nothing if it has that version.

    Raises `OptionError` for an unknown version or one in the other direction, `VersionChangeError` if something would be lost,
    `CommitConflictError` while a Hudi writer is at work, `LockTimeoutError`, and whatever compacting raises.
    """
    state = TableState.load(storage)
    wanted = target_of(state.config, to, upgrade=upgrade)
    planned, present = plan_change(state, wanted), state.config.version
    steps = steps_of(state, planned)
    if dry_run or present is wanted:
        if not dry_run:
            with locked_table(storage, lock_timeout_ms=lock_timeout_ms):  # removes what an interrupted change left
                pass
        return VersionChange(from_version=int(present), to_version=int(wanted), steps=steps, notes=planned.notes, dry_run=dry_run)
    # A first pass without the lock lets other processes write; the second, under the lock, then has little to do.
    compacted = _compact(storage, compacting, lock_timeout_ms)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms):
        compacted += _compact(storage, compacting, lock_timeout_ms)
        changed = _change(TableState.load(storage), wanted, present)
    return replace(changed, steps=steps, compacted=compacted)


def _compact(storage: Storage, compacting: Compacting, lock_timeout_ms: int) -> tuple[str, ...]:
    """Run scheduled compactions, and compact all other slices with logs; returns the instants of the compactions."""
    state = TableState.load(storage)
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    done: list[str | None] = []
    for action in (Action.LOG_COMPACTION, Action.COMPACTION):
        for plan in pending_plans(state, action):
            result = run(
                storage,
                compacting.options,
                compacting.write_options,
                compacting.runner,
                instant=plan.requested_time,
                lock_timeout_ms=lock_timeout_ms,
                log_compaction=action is Action.LOG_COMPACTION,
            )
            done.append(result.instant)
    if compactable(TableState.load(storage)):
        result = schedule_and_run(
            storage, compacting.everything, compacting.write_options, compacting.runner, lock_timeout_ms=lock_timeout_ms
        )
        done.append(result.instant)
    return tuple(instant for instant in done if instant is not None)


def _change(state: TableState, wanted: TableVersion, present: TableVersion) -> VersionChange:
    """Change the version. The caller holds the table's lock, has rolled back dead writes and compacted logs."""
    if finish_cleans(state):
        state = state.refresh()
    if finish_archiving(state):
        state = state.refresh()
    if state.config.version is not present:
        raise CommitConflictError(
            f"another process brought the table to version {int(state.config.version)} meanwhile; look at it, and try again",
            table=state.config.name,
        )
    planned = plan_change(state, wanted)
    state = drop_metadata_table(state, f"its files would be of another version than {int(wanted)}")
    archived = len(state.archived_timeline.instants()) if planned.moves else 0
    instants = _move(state, planned) if planned.moves else 0
    version_index_definitions(state.storage, planned.config)
    check_nobody_committed(state)
    ConfigStore(state.storage).update(planned.properties.changes)
    if planned.moves:
        OtherLayout(state.storage, planned.config, format_of(planned.config)).remove()
    logger.info("%s was brought from version %d to %d", state.config.name, present, wanted)
    return VersionChange(from_version=int(present), to_version=int(wanted), notes=planned.notes, instants=instants, archived=archived)


def _move(state: TableState, planned: PlannedChange) -> int:
    """Write the timeline in the layout of the new version; returns the number of state files."""
    present = OtherLayout(state.storage, state.config, state.format)
    made = new_timeline(state, history_of(state.storage, present.other, planned.config))
    begin_moving(state.storage)
    present.clear()
    made.write(state.storage)
    return len(made.states)
