"""What a write does to file groups and stored rows, decided once from its request and the table."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.write.context import WriteContext, looks_up_inserts
from lakehouse_engine.write.request import WriteRequest

INSERTS = frozenset({WriteOperationType.INSERT, WriteOperationType.BULK_INSERT})
REPLACING = frozenset(
    {WriteOperationType.INSERT_OVERWRITE, WriteOperationType.INSERT_OVERWRITE_TABLE, WriteOperationType.DELETE_PARTITION}
)
"""Operations that replace file groups."""
_COMPARING = frozenset({WriteOperationType.UPSERT, WriteOperationType.DELETE})


@dataclass(frozen=True, slots=True)
class Effect:
    """`action` is that of the commit on the timeline. Picklable.

    `makes_new_groups`: every row goes to a new file group, and no key is looked up. `compares`: rows are compared with the stored rows of
    their keys. `looks_up`: stored rows decide what happens to the write's rows, by comparison or in another way. `combines`: of
    inserted rows with one key, one is kept. `drops_deletions`: rows marked as deletions are left out of new file groups. `is_streamed`:
    rows can go into files as they come, because nothing has to be known about them before.
    """

    operation: WriteOperationType
    action: Action
    makes_new_groups: bool
    compares: bool
    looks_up: bool
    combines: bool
    drops_deletions: bool
    is_streamed: bool

    @classmethod
    def of(cls, request: WriteRequest, context: WriteContext) -> Effect:
        operation, has_buckets = request.operation, context.layout is not None
        replaces = operation in REPLACING
        new_groups = replaces or (operation is WriteOperationType.BULK_INSERT and not has_buckets)
        by_policy = looks_up_inserts(operation, request.options)
        # Readers see one row per key of a log.
        logs_inserts = operation in INSERTS and has_buckets and context.merges_on_read
        combines = not context.keyless and (request.options.combine_before_insert or logs_inserts)
        drops = operation is not WriteOperationType.BULK_INSERT if request.drop_deletions is None else request.drop_deletions
        drops = drops and bool(context.marks.columns(context.schema.names))
        meets_stored = operation is not WriteOperationType.INSERT or request.delete_keys is not None or has_buckets
        return cls(
            operation=operation,
            action=_action(replaces, context),
            makes_new_groups=new_groups,
            compares=not new_groups and request.replaced_rows is None and (operation in _COMPARING or by_policy),
            looks_up=not new_groups and (meets_stored or by_policy or context.soft is not None),
            combines=combines,
            drops_deletions=drops,
            is_streamed=new_groups and not combines and not has_buckets and not drops,
        )


def _action(replaces: bool, context: WriteContext) -> Action:
    if replaces:
        return Action.REPLACE_COMMIT
    return Action.DELTA_COMMIT if context.merges_on_read else Action.COMMIT
