"""Plans clusterings: groups of slices that are rewritten together (hudi-format 10.6).

As in Hudi's `PartitionAwareClusteringPlanStrategy`: slices of one partition, the largest first, until a group is full. Files that a
clustering brought into the same order and that are unchanged since are left alone, except for small ones once there are so many new bytes
that it pays to write them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.plans import (
    HoodieClusteringGroup,
    HoodieClusteringPlan,
    HoodieClusteringStrategy,
    HoodieRequestedReplaceMetadata,
    HoodieSliceInfo,
)
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import ClusteringOptions
from lakehouse_engine.options.clustering import CLUSTERING_SMALL_FILE, EXECUTION_STRATEGY, SINGLE_FILE
from lakehouse_engine.options.write import MAX_FILE_SIZE
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.compact.strategies import (
    TOTAL_IO_MB,
    TOTAL_IO_READ_MB,
    TOTAL_IO_WRITE_MB,
    TOTAL_LOG_FILES,
    TOTAL_LOG_FILES_SIZE,
)

_PACKAGE = "org.apache.hudi.client.clustering.run.strategy."
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live slice that is in no plan of a service. `in_order`: a clustering made it in the order asked for, and it has no logs."""

    piece: FileSlice
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class PlannedGroups:
    """Groups of slices, and how many more there would be without a limit."""

    groups: tuple[tuple[FileSlice, ...], ...]
    left: int = 0


def plan_groups(by_partition: Mapping[str, Sequence[Candidate]], options: ClusteringOptions, *, alone: bool = False) -> PlannedGroups:
    """The groups of one clustering, by partition in the order given. `alone`: a slice is never written together with another."""
    alone = alone or options.strategy == SINGLE_FILE
    groups = [group for found in by_partition.values() for group in _grouped(_taken(found, options, alone), options, alone)]
    return PlannedGroups(tuple(groups[: options.groups]), max(0, len(groups) - options.groups))


def _taken(candidates: Sequence[Candidate], options: ClusteringOptions, alone: bool) -> list[FileSlice]:
    """Slices of a partition to rewrite."""
    fresh = [one.piece for one in candidates if not one.in_order and _is_small(one.piece, options.small_file_limit)]
    if alone or not fresh:
        return fresh
    limit = CLUSTERING_SMALL_FILE.default if options.small_file_limit is None else options.small_file_limit
    taken, size = list(fresh), sum(piece.size for piece in fresh)
    # Files no larger than all that is new: so a file is rewritten as often as the partition doubles, not at each clustering.
    for piece in sorted((one.piece for one in candidates if one.in_order and _is_small(one.piece, limit)), key=lambda piece: piece.size):
        if piece.size > size:
            break
        taken.append(piece)
        size += piece.size
    return taken


def _is_small(piece: FileSlice, limit: int | None) -> bool:
    return limit is None or piece.base_file is None or piece.base_file.size < limit


def _grouped(pieces: Iterable[FileSlice], options: ClusteringOptions, alone: bool) -> list[tuple[FileSlice, ...]]:
    most = 1 if alone else options.group_bytes
    groups: list[list[FileSlice]] = []
    size = 0
    for piece in sorted(pieces, key=lambda piece: (-piece.size, piece.file_id)):
        if not groups or size + piece.size > most:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.size
    return [tuple(group) for group in groups if len(group) > 1 or _is_worth(group[0], options)]


def _is_worth(piece: FileSlice, options: ClusteringOptions) -> bool:
    """True if it pays to rewrite a slice alone."""
    return options.single_group and bool(options.sort_columns or piece.log_files)


def encoded_plan(groups: PlannedGroups, options: ClusteringOptions, uri: Callable[[str], str]) -> HoodieRequestedReplaceMetadata:
    """The plan as Hudi's writers put it on the timeline; `uri` makes a full address of a path relative to the table."""
    plan = HoodieClusteringPlan(
        input_groups=tuple(_group(pieces, options.target_file_bytes, uri) for pieces in groups.groups),
        strategy=HoodieClusteringStrategy(
            strategy_class_name=_PACKAGE + EXECUTION_STRATEGY, strategy_params=SortOrder.of(options).params
        ),
        extra_metadata={},
        preserve_hoodie_metadata=True,
    )
    return HoodieRequestedReplaceMetadata(
        operation_type=str(WriteOperationType.CLUSTER), clustering_plan=plan, extra_metadata={}, version=1
    )


def _group(pieces: Sequence[FileSlice], target: int, uri: Callable[[str], str]) -> HoodieClusteringGroup:
    size = sum(piece.size for piece in pieces)
    return HoodieClusteringGroup(
        slices=tuple(_slice(piece, uri) for piece in pieces),
        metrics=_metrics(pieces),
        num_output_file_groups=ceil(size / target) or 1,
    )


def _slice(piece: FileSlice, uri: Callable[[str], str]) -> HoodieSliceInfo:
    return HoodieSliceInfo(
        data_file_path=uri(piece.base_file.path) if piece.base_file else "",
        delta_file_paths=tuple(uri(log.path) for log in piece.log_files),
        file_id=piece.file_id,
        partition_path=piece.partition_path,
        bootstrap_file_path="",
    )


def _metrics(pieces: Sequence[FileSlice]) -> dict[str, float]:
    """Metrics as of Hudi's `FileSliceMetricUtils`, in whole megabytes of each slice."""
    logs = [log.size for piece in pieces for log in piece.log_files]
    read = sum(piece.size // _MEGABYTE for piece in pieces)
    written = sum((piece.base_file.size if piece.base_file else MAX_FILE_SIZE.default) // _MEGABYTE for piece in pieces)
    return {
        TOTAL_LOG_FILES: float(len(logs)),
        TOTAL_LOG_FILES_SIZE: float(sum(logs)),
        TOTAL_IO_READ_MB: float(read),
        TOTAL_IO_WRITE_MB: float(written),
        TOTAL_IO_MB: float(read + written),
    }
