"""Missing compaction plans with logs on top: without the plan it is unknown which slice those logs continue."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.file_names import parse_log_file
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import in_time_order, is_later
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.services.compact.plan import operation_of
from lakehouse_engine.view.table_state import TableState


def lost_compaction_plans(state: TableState) -> Iterator[Mending]:
    """Compactions that are not on the timeline although completed writes logged to their result.

    Only a planned compaction lets a group with an older slice have logs of a newer one without a base file.
    """
    for time, slices in in_time_order(_planned(state).items(), lambda planned: planned[0]):
        instant = Instant(time, Action.COMPACTION, State.REQUESTED)
        path = f"{state.format.timeline_folder}/{state.format.file_name(instant)}"
        content = encode_plan(HoodieCompactionPlan(operations=tuple(operation_of(piece) for piece in slices.values())))
        message = f"the plan of the compaction is gone, and logs of {len(slices)} groups are on top of it: it is made anew from those"
        yield mending(path, message, lambda path=path, content=content: state.storage.create(path, content))  # type: ignore[misc]


def promised_logs(state: TableState) -> dict[str, FileGroupId]:
    """Logs of completed writes; empty if a commit is damaged, which is reported separately."""
    try:
        return {promise.path: group for group, promises in state.manifest.promises(None).items() for promise in promises}
    except FormatError:
        return {}


def _planned(state: TableState) -> dict[str, dict[FileGroupId, FileSlice]]:
    """Slices before those logs, by the missing instant."""
    found: dict[str, dict[FileGroupId, FileSlice]] = {}
    for path, group in promised_logs(state).items():
        partition, _, name = path.rpartition("/")
        time = parse_log_file(partition, name).instant_time
        if state.timeline.contains(time) or state.timeline.is_committed(time) or state.storage.head(path) is None:
            continue
        known = state.view.file_group(group)
        before = next((piece for piece in known.slices if is_later(time, piece.base_instant)), None) if known is not None else None
        if before is not None:
            found.setdefault(time, {})[group] = before
    return found
