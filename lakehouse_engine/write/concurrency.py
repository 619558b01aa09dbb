"""Decides which writes make their files while others write the same table, and what such a write rests on (docs/adr/0064)."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse_engine.commit.overtaken import Reach
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batches import Batches

ADDING = Reach()
"""Reach of a write that looks no keys up."""
_BESIDE = frozenset({WriteOperationType.UPSERT, WriteOperationType.INSERT, WriteOperationType.DELETE, WriteOperationType.BULK_INSERT})
"""Operations that may run beside others. The rest replace file groups, and must know all of them."""


def may_let_go(state: TableState, batches: Batches) -> bool:
    """True if a write may release the table's lock while it makes its files.

    Not in tables of version 6, whose instants are completed in the order of their requests. Not beside Hudi's writers, not if the write's
    keys may be anywhere in the table (any other commit would be in its way), and not for a query that would be run a second time.
    """
    request = batches.request
    if not state.format.writers_at_once or lock_options(state.config).optimistic:
        return False
    if request.operation not in _BESIDE or request.replaced_rows is not None or request.replace_schema:
        return False
    if any(one is not None and one.is_query and not batches.stage.holds(one) for one in (request.data, request.delete_keys)):
        return False
    context = batches.context
    if context.is_global and not (context.options.update_partition_path or context.config.rows_keep_partitions):
        return False  # it changes the table's properties first
    return not batches.effect.looks_up or (bool(context.config.partition_fields) and not context.is_global)


def reach_of(batches: Batches, partitions: Iterable[str]) -> Reach:
    """Reach of a write with rows in these partitions."""
    return Reach(frozenset(partitions)) if batches.effect.looks_up else ADDING
