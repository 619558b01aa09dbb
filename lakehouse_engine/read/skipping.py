"""Which slices of a table a filtered snapshot reads, and why it passes over the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.options import STORED_PREFIX
from lakehouse_engine.options.read import TRUST_PARTITION_PATHS
from lakehouse_engine.read.footers import FOOTERS
from lakehouse_engine.read.scan import Filters
from lakehouse_engine.read.schema import table_schema
from lakehouse_engine.read.statistics import matching_row_groups
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState

PARTITION, STATISTICS = "partition", "statistics"


def skipped_slices(
    state: TableState, expression: pc.Expression, options: Mapping[str, Any] | None = None
) -> list[tuple[FileSlice, str | None]]:
    """Every slice of the newest snapshot, and what rules it out: its `PARTITION`, the `STATISTICS` of its base file, or None: it is read.

    Unlike a reading this lists all partitions. Raises `OptionError` for a filter that does not fit, and as `base_file_metadata`.
    """
    trusts = TRUST_PARTITION_PATHS.read({**state.config.prefixed(STORED_PREFIX), **(options or {})})
    return at_one_moment(state, lambda now: _skipped(now, Filters(expression, trusts)))


def _skipped(state: TableState, filters: Filters) -> list[tuple[FileSlice, str | None]]:
    scope = filters.scope(state, table_schema(state))
    within = frozenset(scope.within(state.view.partitions()))
    found: list[tuple[FileSlice, str | None]] = []
    for piece in state.view.latest_slices():
        reason = None if piece.partition_path in within else PARTITION
        if reason is None and piece.base_file is not None and not piece.log_files:
            footer = FOOTERS.read(state.storage, piece.base_file)
            reason = None if matching_row_groups(footer, scope.wanted, piece.base_file.path) else STATISTICS
        found.append((piece, reason))
    return found
