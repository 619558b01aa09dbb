"""Finds the groups of a scheduled clustering that can be carried out: those whose slices are still as planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakehouse_engine.errors import ClusteringError
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieClusteringGroup, HoodieClusteringPlan, HoodieRequestedReplaceMetadata, HoodieSliceInfo
from lakehouse_engine.view.table_state import TableState

Pieces = tuple[FileSlice, ...]


def read_plan(state: TableState, instant: Instant) -> HoodieRequestedReplaceMetadata:
    """Plan of a pending clustering. Raises `ClusteringError` if the instant has none."""
    stored = state.active.plan(HoodieRequestedReplaceMetadata, Instant(instant.requested_time, instant.action, State.REQUESTED))
    if stored.clustering_plan is None:
        raise ClusteringError("the instant has no plan of a clustering", instant=instant, table=state.config.name)
    return stored


def groups_of(stored: HoodieRequestedReplaceMetadata) -> tuple[HoodieClusteringGroup, ...]:
    """Groups of a stored clustering plan; none if it has no plan."""
    return (stored.clustering_plan.input_groups or ()) if stored.clustering_plan else ()


def with_groups(stored: HoodieRequestedReplaceMetadata, groups: Sequence[HoodieClusteringGroup]) -> HoodieRequestedReplaceMetadata:
    """The same plan with these groups."""
    plan = stored.clustering_plan or HoodieClusteringPlan()
    return replace(stored, clustering_plan=replace(plan, input_groups=tuple(groups)))


def standing(state: TableState, groups: Sequence[HoodieClusteringGroup]) -> list[tuple[HoodieClusteringGroup, Pieces]]:
    """Groups whose slices are all as planned, with those slices."""
    partitions = dict.fromkeys(piece.partition_path or "" for group in groups for piece in group.slices or ())
    live = {piece.group: piece for path in partitions for piece in state.view.latest_slices(path)}
    found = ((group, _pieces(group, live)) for group in groups)
    return [(group, pieces) for group, pieces in found if pieces]


def _pieces(group: HoodieClusteringGroup, live: Mapping[FileGroupId, FileSlice]) -> Pieces:
    """The slices of a group; empty unless all are as planned."""
    found = [(info, live.get(FileGroupId(info.partition_path or "", info.file_id or ""))) for info in group.slices or ()]
    if any(piece is None or not _is_as_planned(piece, info) for info, piece in found):
        return ()
    return tuple(piece for _, piece in found if piece is not None)


def _is_as_planned(piece: FileSlice, info: HoodieSliceInfo) -> bool:
    base = piece.base_file.name if piece.base_file else ""
    logs = {log.name for log in piece.log_files}
    return _name(info.data_file_path) == base and {_name(path) for path in info.delta_file_paths or ()} == logs


def _name(path: str | None) -> str:
    return (path or "").rpartition("/")[2]
