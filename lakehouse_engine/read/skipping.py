"""Finds the slices that a filtered read opens, and why it skips the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.options import STORED_PREFIX, layered
from lakehouse_engine.options.read import TRUST_PARTITION_PATHS
from lakehouse_engine.read.scan import Filters, ScanPlan
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState

PARTITION, STATISTICS = "partition", "statistics"


def skipped_slices(
    state: TableState, expression: pc.Expression, options: Mapping[str, Any] | None = None
) -> list[tuple[FileSlice, str | None]]:
    """Every slice of the newest snapshot, with the reason for skipping it: its `PARTITION`, or the `STATISTICS` of its base file. None if
    it is read.

    Unlike a read, this lists all partitions. Raises `OptionError` for a filter that does not fit, and as `base_file_metadata`.
    """
    trusts = TRUST_PARTITION_PATHS.read(layered(state.config.prefixed(STORED_PREFIX), options or {}))
    return at_one_moment(state, lambda now: _skipped(now, Filters(expression, trusts)))


def _skipped(now: TableState, filters: Filters) -> list[tuple[FileSlice, str | None]]:
    scope = filters.scope(now, table_schema(now))
    within = frozenset(scope.within(now.view.partitions()))
    pieces = now.view.latest_slices()
    inside = [piece for piece in pieces if piece.partition_path in within]
    bases = [piece.base_file for piece in inside if piece.base_file is not None and not piece.log_files]
    out = guarantees_for(now, Trusted(now), opening=True).without_rows(now.storage, bases, scope.wanted)

    def reason(piece: FileSlice) -> str | None:
        if piece.partition_path not in within:
            return PARTITION
        is_out = not piece.log_files and piece.base_file is not None and piece.base_file.path in out
        return STATISTICS if is_out else None

    return [(piece, reason(piece)) for piece in pieces]


def without_ruled_out(plan: ScanPlan) -> ScanPlan:
    """The plan without what its `guarantees` say to hold no wanted row: file groups, and files. Such files under logs become
    `replaced_only`.

    Asks nothing if partition paths decide the whole filter. Raises as `FileGuarantees.without_rows`.
    """
    wanted = plan.wanted
    if wanted is None or not (plan.files or plan.logged) or (plan.rules is not None and plan.rules.tell_all(wanted.columns)):
        return plan
    groups = plan.guarantees.groups(wanted, len(plan.files) + len(plan.logged))
    if groups is not None:
        files = tuple(file for file in plan.files if FileGroupId(file.partition_path, file.file_id) in groups)
        plan = replace(plan, files=files, logged=tuple(piece for piece in plan.logged if piece.slice.group in groups))
    bases = tuple(plan.base_files())
    out = plan.guarantees.without_rows(plan.storage, bases, wanted, verify=plan.verify) if bases else frozenset()
    kept = tuple(file for file in plan.files if file.path not in out)
    return replace(plan, files=kept, replaced_only=out.difference(file.path for file in plan.files))


@dataclass(frozen=True, slots=True)
class Opened:
    """How much a plan reads: partitions, base files (including those under logs), and log files; sizes in bytes."""

    partitions: int
    files: int
    file_bytes: int
    logs: int
    log_bytes: int

    @classmethod
    def by(cls, plan: ScanPlan) -> Opened:
        bases = list(plan.base_files())
        logs = [log for piece in plan.logged for log in piece.slice.log_files]
        paths = {file.partition_path for file in plan.files} | {piece.slice.partition_path for piece in plan.logged}
        return cls(len(paths), len(bases), sum(file.size for file in bases), len(logs), sum(log.size for log in logs))
