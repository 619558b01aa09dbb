"""A write, and the table that it is planned for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lakehouse_engine.commit.concurrency.pending import compacting_groups, pending_groups
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.index.base import Found, KeyedRows, Slices, TaggedFile
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.effect import Effect
from lakehouse_engine.write.locate.logged import SliceLogs
from lakehouse_engine.write.locate.settle import StoredSide
from lakehouse_engine.write.tasks.base_files import FileContext


class Located(Protocol):
    """What a table's slices have of some keys, found before."""

    def find(self, batch: Batch) -> Found:
        """For a batch of exactly those keys."""
        ...

    def side(self, piece: FileSlice) -> StoredSide: ...


@dataclass(frozen=True, slots=True)
class KnownSlices:
    """Slices by partition. Implements `index.base.Slices`."""

    by_partition: Mapping[str, Sequence[FileSlice]]

    @classmethod
    def of(cls, slices: Iterable[FileSlice]) -> KnownSlices:
        by_partition: dict[str, list[FileSlice]] = {}
        for piece in slices:
            by_partition.setdefault(piece.partition_path, []).append(piece)
        return cls(by_partition)

    def latest_slices(self, partition: str | None = None) -> list[FileSlice]:
        if partition is not None:
            return list(self.by_partition.get(partition, ()))
        return [piece for path in sorted(self.by_partition) for piece in self.by_partition[path]]


@dataclass(frozen=True, slots=True)
class Target:
    """`clustering` and `compacting` have the groups that a pending clustering or compaction has plans for, with its instant. `logs` are
    those of a merge-on-read table. Where a part of a batch is planned, `located` has what is stored of its keys (unless the index needs
    no look-up), and new records are placed when those of all parts are known.
    """

    storage: Storage
    view: Slices
    logs: SliceLogs | None
    clustering: dict[tuple[str, str], str]
    compacting: dict[FileGroupId, str]
    located: Located | None = None
    is_part: bool = False

    @classmethod
    def of(cls, state: TableState, context: WriteContext) -> Target:
        clustering = pending_groups(state)
        if not context.merges_on_read:
            return cls(state.storage, state.view, None, clustering, {})
        return cls(state.storage, state.view, SliceLogs.of(state, context), clustering, compacting_groups(state))


@dataclass(frozen=True, slots=True)
class Write:
    """Shared parts of a write's planning; picklable."""

    effect: Effect
    context: WriteContext
    files: FileContext
    target: Target

    def to(self, **changes: Any) -> Write:
        """The same write with other values of these fields in its target."""
        return replace(self, target=replace(self.target, **changes))

    def find(self, batch: Batch, runner: TaskRunner) -> Found:
        """Where keys of a batch are stored."""
        target, context = self.target, self.context
        if target.located is not None:
            return target.located.find(batch)
        keyed = KeyedRows(batch.keys, batch.rows_by_partition())
        return context.index.find(target.storage, target.view, keyed, context.stored_keys, runner)

    def tag(self, batch: Batch, runner: TaskRunner) -> list[TaggedFile]:
        """Every place in base files where a key of the batch is stored."""
        return self.find(batch, runner).tagged
