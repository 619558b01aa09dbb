"""Logs that are written while a compaction waits are on the slice that it will make, in versions whose names do not say so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version, version_of_new_tables

__all__ = ["pytest_generate_tests", "table_version"]

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def batch(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "v": [v for _, v in pairs]}, schema=SCHEMA)


def values(table: LocalTable, as_of: str | None = None) -> list[int]:
    return sorted(table.read(as_of=as_of)["v"].to_pylist())


@pytest.fixture
def waiting() -> LocalTable:
    """Two rows, an update of the first, a compaction that is planned, and an update of the second."""
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], [], [], "mor", version=version_of_new_tables()))
    table = LocalTable(storage)
    table.insert(batch((1, 10), (2, 20)))
    table.upsert(batch((1, 11)))
    table.schedule_compaction()
    table.upsert(batch((2, 21)))
    return table


def test_a_compaction_takes_what_was_there_when_it_was_planned(waiting: LocalTable) -> None:
    (planned,) = waiting.state.timeline.pending_compactions
    (group,) = waiting.state.view.file_groups("")
    assert group.slices[0].base_instant == planned
    assert waiting.run_compaction().instant == planned
    (group,) = waiting.state.view.file_groups("")
    assert (group.slices[0].base_instant, len(group.slices[0].log_files)) == (planned, 1)
    assert values(waiting, waiting.state.order.moment(planned)) == [11, 20]
    assert values(waiting) == [11, 21]


@pytest.mark.table_versions(9)
def test_a_plan_that_is_damaged_makes_no_slice(waiting: LocalTable) -> None:
    (planned,) = waiting.state.timeline.pending_compactions
    path = waiting.state.active.path(Instant(planned, Action.COMPACTION, State.REQUESTED))
    waiting.storage.overwrite(path, waiting.storage.read(path)[:-3])
    (group,) = waiting.state.view.file_groups("")
    assert [len(piece.log_files) for piece in group.slices] == [2]
    assert values(waiting) == [11, 21]
