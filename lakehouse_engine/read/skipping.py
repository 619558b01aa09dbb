"""Finds the slices that a filtered read opens, and why it skips the others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.options import STORED_PREFIX, layered
from lakehouse_engine.options.read import TRUST_PARTITION_PATHS
from lakehouse_engine.read.guarantees import FROM_FOOTERS
from lakehouse_engine.read.row_filter import Guaranteed, RowFilter
from lakehouse_engine.read.scan import Filters, ScanPlan
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of
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


def _skipped(state: TableState, filters: Filters) -> list[tuple[FileSlice, str | None]]:
    scope = filters.scope(state, table_schema(state))
    within = frozenset(scope.within(state.view.partitions()))
    found: list[tuple[FileSlice, str | None]] = []
    for piece in state.view.latest_slices():
        reason = None if piece.partition_path in within else PARTITION
        if reason is None and piece.base_file is not None and not piece.log_files:
            known = FROM_FOOTERS.rows(state.storage, piece.base_file, scope.wanted)
            reason = None if any(scope.wanted.may_hold(known)) else STATISTICS
        found.append((piece, reason))
    return found


def without_ruled_out(plan: ScanPlan) -> ScanPlan:
    """The plan without files that are guaranteed to hold no wanted row; such files under logs become `replaced_only`.

    Opens no footer if partition paths decide the whole filter. Otherwise threads of this process read each file's guarantees once. Raises
    as `base_file_metadata`.
    """
    wanted, files = plan.wanted, tuple(plan.base_files())
    if wanted is None or not files or (plan.rules is not None and plan.rules.tell_all(wanted.columns)):
        return plan
    key = _key(plan.storage, files, wanted)
    if key is None:
        told = _Told.of(plan, files, wanted)
    else:
        told = _KNOWN.find((plan.verify, plan.guarantees, key), lambda: _Told.of(plan, files, wanted))
    out = told.ruled_out(files, wanted)
    kept = tuple(file for file in plan.files if file.path not in out)
    return replace(plan, files=kept, replaced_only=out.difference(file.path for file in plan.files))


@dataclass(frozen=True, slots=True)
class _Told:
    """Guarantees of some files: `owners[i]` is the number of the file to which guarantee i belongs."""

    owners: tuple[int, ...]
    sets: Guaranteed

    @classmethod
    def of(cls, plan: ScanPlan, files: Sequence[BaseFile], wanted: RowFilter) -> _Told:
        def read(file: BaseFile) -> list[pc.Expression]:
            return list(plan.guarantees.rows(plan.storage, file, wanted, verify=plan.verify))

        found = looking_runner(local_runner({}), plan.storage).run(read, files, name="footers")
        owners = tuple(number for number, guarantees in enumerate(found) for _ in guarantees)
        return cls(owners, Guaranteed.of([one for guarantees in found for one in guarantees], wanted.schema))

    def ruled_out(self, files: Sequence[BaseFile], wanted: RowFilter) -> frozenset[str]:
        """Paths of the files in which the filter is true for no row."""
        chosen = {number for number, may in zip(self.owners, wanted.may_hold_in(self.sets), strict=True) if may}
        return frozenset(file.path for number, file in enumerate(files) if number not in chosen)


def _key(storage: Storage, files: Sequence[BaseFile], wanted: RowFilter) -> Hashable | None:
    """Key for everything that the guarantees depend on; None in memory, where two tables may have the same name."""
    identity = identity_of(storage)
    if identity is None:
        return None
    return identity, wanted.schema, wanted.columns, wanted.rounds, tuple((file.path, file.size) for file in files)


_KNOWN: BoundedCache[_Told] = BoundedCache(100_000, lambda told: 1 + len(told.owners))
"""For the tables last read with a filter, by the filter's columns."""


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
