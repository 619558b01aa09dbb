"""Queries planned while other processes are at work on the table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakehouse_engine.actions.create import TableSpec, create_table
from lakehouse_engine.errors import InstantNotFoundError, MissingFileError
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


def rows(ts: int) -> pa.Table:
    return pa.table({"id": [1, 2], "ts": [ts, ts]}, schema=SCHEMA)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> LocalTable:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], table_type=request.param))
    made = LocalTable(storage)
    for ts in range(6):
        made.upsert(rows(ts))
    if request.param == "mor":
        made.compact()
        for ts in (6, 7):
            made.upsert(rows(ts))
    return made


def archive(table: LocalTable) -> None:
    table.clean(1)
    assert table.archive(2, 3).archived


@pytest.mark.parametrize("known", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize(("meanwhile", "difference"), [(archive, 0), (lambda table: table.rollback(), 1)], ids=["archived", "rolled back"])
def test_what_is_archived_or_taken_back_while_a_query_is_planned_does_not_fail_it(
    table: LocalTable, meanwhile: Callable[[LocalTable], object], difference: int, known: bool
) -> None:
    state = table.state
    newest = max(table.read(["ts"])["ts"].to_pylist())
    if known:
        for instant in state.timeline.writes():
            state.commit_metadata(instant)
    meanwhile(table)
    plan = plan_query(state, Query())
    assert read_arrow(plan, columns=["ts"])["ts"].to_pylist() == [newest - difference] * 2


def test_a_file_that_is_lost_stays_an_error(table: LocalTable) -> None:
    for piece in table.state.view.latest_slices():
        if piece.base_file is not None:
            table.storage.delete(piece.base_file.path)
    with pytest.raises(MissingFileError):
        plan_query(table.state, Query())


def test_a_timeline_that_never_stands_still_is_an_error_in_the_end(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    real, looks = TableState.refresh, []

    def refresh(state: TableState) -> TableState:
        looks.append(state)
        table.upsert(rows(100 + len(looks)))
        newer = real(state)
        newest = newer.timeline.writes().last()
        assert newest is not None
        table.rollback()
        return newer

    monkeypatch.setattr(TableState, "refresh", refresh)
    state = table.state
    table.rollback()
    with pytest.raises(InstantNotFoundError):
        plan_query(state, Query())
    assert 1 < len(looks) < 20
