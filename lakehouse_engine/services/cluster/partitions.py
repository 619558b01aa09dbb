"""Selects the partitions of a clustering (Hudi `PartitionAwareClusteringPlanStrategy`, `ClusteringPlanPartitionFilter`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lakehouse_engine.options.clustering import Selection

_HOURS = 24


def selected(partitions: Iterable[str], selection: Selection, *, hour: int) -> list[str]:
    """The selected partition paths, in the order of plans. `hour` of the day is used by the mode DAY_ROLLING."""
    known = sorted(set(partitions))
    if selection.named:
        known = [path for path in known if path in selection.named]
    if selection.pattern:
        known = [path for path in known if re.fullmatch(selection.pattern, path)]
    if selection.mode == "RECENT_DAYS":
        return known[::-1][selection.skipped : selection.skipped + selection.lookback]
    if selection.mode == "SELECTED_PARTITIONS":
        return [path for path in known if selection.begin <= path <= selection.end]
    if selection.mode == "DAY_ROLLING":
        return [path for number, path in enumerate(known) if number % _HOURS == hour]
    return known
