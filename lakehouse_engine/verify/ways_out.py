"""Remedies for lost and damaged data files: a backup, or an earlier state, because the rows are stored nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.read.scan import ScanPlan, plan_snapshot
from lakehouse_engine.undo.restore_plan import plan_restore
from lakehouse_engine.view.lost_commits import shown_at, writes_before
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


def way_out(state: TableState, damaged: Collection[str]) -> str:
    """What to do about lost or damaged data files (paths relative to the table; "" for an unknown one)."""
    backup = "put them back from a backup (the same name and bytes)"
    pinned = protected_files(state)
    holders = sorted({pinned[path] for path in damaged if path in pinned})
    given_up = [f"`savepoint delete {time}` gives the savepoint up that needs them" for time in holders]
    if _is_whole(state, None, damaged):
        rest = f"; or {', '.join(given_up)}" if given_up else "; they are of no use once a clean has passed those moments"
        return f"the table as it is now needs none of them, only reads of earlier moments do: {backup}{rest}"
    target = next(_targets(state, damaged), None)
    back = f"or `restore {target}`, which takes back what was written since" if target else "no earlier moment is whole to go back to"
    partitions = ", ".join(sorted({path.rpartition("/")[0] or "the table" for path in damaged}))
    anew = f"or write the rows of {partitions} anew with insert_overwrite"
    return "; ".join([backup, back, anew + "".join(f", then {one}" for one in given_up)])


def earlier_moments(state: TableState, time: str) -> Iterator[str]:
    """Restores that take the write of `time` back, which is damaged: to the write before it, and to the savepoint before it."""
    before, shown = writes_before(state, time).last(), shown_at(state, time)
    if before is not None and _can_be_restored(state, None, before.requested_time):
        yield f"restore to {before.requested_time} (`restore --to {before.requested_time}`)"
    saved = state.order.newest(one for one in state.timeline.savepointed if one != time and state.order.is_visible(one, shown))
    if saved is not None and _can_be_restored(state, saved, None):
        yield f"restore to the savepoint of {saved} (`restore --savepoint {saved}`)"


def _targets(state: TableState, damaged: Collection[str]) -> Iterator[str]:
    """Targets that a restore accepts, newest first."""
    savepoints, writes = state.timeline.savepointed, state.timeline.completed().writes()
    for time in state.order.sorted({*savepoints, *(write.requested_time for write in writes)}, newest_first=True):
        savepoint = time if time in savepoints else None
        if _is_whole(state, state.order.moment(time), damaged) and _can_be_restored(state, savepoint, None if savepoint else time):
            yield f"--savepoint {time}" if savepoint else f"--to {time}"


def _is_whole(state: TableState, moment: str | None, damaged: Collection[str]) -> bool:
    try:
        return _paths(plan_snapshot(state, moment)).isdisjoint(damaged)
    except LakehouseError:
        return False


def _can_be_restored(state: TableState, savepoint: str | None, to: str | None) -> bool:
    try:
        plan_restore(state, savepoint, to, cascade=True)
    except LakehouseError:
        return False
    return True


def _paths(plan: ScanPlan) -> set[str]:
    found = {file.path for file in plan.files}
    for piece in plan.logged:
        found |= {log.path for log in piece.slice.log_files}
        found |= {piece.slice.base_file.path} if piece.slice.base_file is not None else set()
    return found
