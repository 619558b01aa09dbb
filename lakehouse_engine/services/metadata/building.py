"""Builds a metadata table, drops it, or does both, under the table's lock and beside no other writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakehouse_engine.commit.indexing import settle_dead_builds
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.metadata_table.building import build as building
from lakehouse_engine.metadata_table.building import drop as dropping
from lakehouse_engine.metadata_table.building.plans import build_of
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.partitions import FILES
from lakehouse_engine.model.services import MetadataTableChange
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState


def build(
    storage: Storage, partitions: Sequence[str], *, define: Sequence[IndexDefinition] = (), lock_timeout_ms: int
) -> MetadataTableChange:
    """Build those of the partitions, and `files`, that the metadata table does not have; `define` are definitions to build them by.

    Raises, with nothing changed, `OptionError` for a partition that the table cannot have, and `CommitConflictError` naming the instant
    while anything is pending, a plan included; `LockTimeoutError`, and as `building.build`.
    """
    building.check_partitions(TableState.load(storage), partitions, define)
    with _alone(storage, lock_timeout_ms) as data:
        return _built(data, partitions, (), define)


def drop(storage: Storage, partitions: Sequence[str] | None = None, *, lock_timeout_ms: int) -> MetadataTableChange:
    """Drop partitions, or the whole metadata table. Raises as `dropping.drop` and `dropping.check_not_needed`, and `LockTimeoutError`."""
    before = TableState.load(storage)
    dropping.check_partitions(before, partitions)
    dropping.check_not_needed(before, partitions or ())
    with _alone(storage, lock_timeout_ms) as data:
        present = tuple(name for name in partitions or () if name in data.config.metadata_partitions)
        dropping.check_not_needed(data, present)
        dropped = dropping.drop(data, None if partitions is None else present)
        return MetadataTableChange(partitions=data.advance().config.metadata_partitions, dropped=dropped)


def rebuild(storage: Storage, partitions: Sequence[str] | None = None, *, lock_timeout_ms: int) -> MetadataTableChange:
    """Drop partitions and build them again; with None all that this engine builds, at least `files`, and what only Hudi builds is dropped.

    Raises as `build`, before anything is dropped.
    """
    before = TableState.load(storage)
    asked = before.config.metadata_partitions if partitions is None else tuple(partitions)
    wanted = tuple(name for name in asked if partitions is not None or building.is_built_here(before, name)) or (FILES,)
    building.check_partitions(before, wanted)
    _check_not_planned(before, wanted)
    with _alone(storage, lock_timeout_ms) as data:
        building.check_nothing_pending(data)
        present = data.config.metadata_partitions
        define = [one for one in stored_definitions(data).values() if one.is_chosen]
        dropped = dropping.drop(data, None if partitions is None else [name for name in wanted if name in present])
        again = [name for name in dropped if building.is_built_here(data, name)]
        asked = tuple(dict.fromkeys((*wanted, *again)))
        return _built(data.advance(), asked, dropped, [one for one in define if one.name in asked])


def _check_not_planned(data: TableState, partitions: Sequence[str]) -> None:
    """Raise `CommitConflictError` if a partition is in a pending plan, which could not be run any more."""
    for name in partitions:
        planned = None if name in data.config.metadata_partitions else build_of(data, name)
        if planned is not None:
            raise CommitConflictError(
                f"{name} of {data.config.name} is to be built by {planned}; run that plan (`lakehouse index create --op run`), or drop the"
                " index",
                instant=planned,
                table=data.config.name,
            )


@contextmanager
def _alone(storage: Storage, lock_timeout_ms: int) -> Iterator[TableState]:
    """The table under its lock, while no writer is at work without it. Index builds that died are settled."""
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms, joined=False) as state:
        yield settle_dead_builds(state)


def _built(
    data: TableState, partitions: Sequence[str], dropped: tuple[str, ...], define: Sequence[IndexDefinition] = ()
) -> MetadataTableChange:
    before = data.config.metadata_partitions
    after = building.build(data, partitions, table_clock(data), define=define).config.metadata_partitions
    return MetadataTableChange(partitions=after, built=tuple(name for name in after if name not in before), dropped=dropped)
