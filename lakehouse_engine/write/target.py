"""The table that a write is planned for, as far as planning asks."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.commit.pending import compacting_groups, pending_groups
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.index.base import KeyedRows, Slices, TaggedFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.input import Batch
from lakehouse_engine.write.logged import SliceLogs


@dataclass(frozen=True, slots=True)
class Target:
    """`clustering` and `compacting` have the groups that a pending clustering or compaction has plans for, with its instant. `logs` are
    those of a merge-on-read table.
    """

    storage: Storage
    view: Slices
    logs: SliceLogs | None
    clustering: dict[tuple[str, str], str]
    compacting: dict[FileGroupId, str]

    @classmethod
    def of(cls, state: TableState, context: WriteContext) -> Target:
        clustering = pending_groups(state)
        if context.config.table_type is TableType.COPY_ON_WRITE:
            return cls(state.storage, state.view, None, clustering, {})
        return cls(state.storage, state.view, SliceLogs.of(state, context), clustering, compacting_groups(state))

    def tag(self, context: WriteContext, batch: Batch, runner: TaskRunner) -> list[TaggedFile]:
        """Every place in base files where a key of the batch is stored."""
        keyed = KeyedRows(batch.keys, batch.rows_by_partition())
        return context.index.tag(self.storage, self.view, keyed, context.stored_keys, runner)
