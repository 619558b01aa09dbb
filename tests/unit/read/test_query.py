"""Queries planned while other processes are at work on the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.api.describe import describe_table
from lakehouse_engine.errors import InstantNotFoundError, MissingFileError, OptionError, TimelineRestoredError
from lakehouse_engine.files.vanished import told_of_crossing
from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.undo.savepoint import list_savepoints
from lakehouse_engine.view.history import history
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
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
        with monkeypatch.context() as inside:
            inside.setattr(TableState, "refresh", real)  # writes look at the table anew, too
            table.upsert(rows(100 + len(looks)))
            newer = real(state)
            table.rollback()
        return newer

    monkeypatch.setattr(TableState, "refresh", refresh)
    state = table.state
    table.rollback()
    with pytest.raises(InstantNotFoundError):
        plan_query(state, Query())
    assert 1 < len(looks) < 20


def test_a_reader_that_crosses_a_restore_is_told_so(table: LocalTable) -> None:
    state = table.state
    plan, target = plan_query(state, Query()), table.instants()[-2]
    table.restore(to=target)
    with pytest.raises(TimelineRestoredError) as caught, told_of_crossing(state):
        read_arrow(plan)
    assert (caught.value.context["target"], "restored" in str(caught.value), "clean" in str(caught.value)) == (target, True, False)
    assert caught.value.context["path"]


@pytest.mark.parametrize(("what", "act"), [("rollback", lambda table: table.rollback()), ("clean", archive)])
def test_a_reader_that_crosses_something_else_is_told_what_it_was(
    table: LocalTable, what: str, act: Callable[[LocalTable], object]
) -> None:
    state = table.state
    plan = plan_query(state, Query(as_of=table.instants()[0] if what == "clean" else None))
    act(table)
    with pytest.raises(MissingFileError, match=f"the {what} [0-9]+ was at work"), told_of_crossing(state):
        read_arrow(plan)


def test_rows_are_read_anew_where_a_restore_took_files_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lakehouse(str(tmp_path), options={"hoodie.clean.automatic": "false"})
    made = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"])
    for ts in range(3):
        made.upsert(rows(ts))
    target = made.history()[1].instant
    opened, left = LocalStorage.open_input, [lambda: HoodieTable.open(made.path).restore(to=target)]

    def open_input(storage: LocalStorage, path: str) -> pa.NativeFile:
        while left:
            left.pop()()
        return opened(storage, path)

    monkeypatch.setattr(LocalStorage, "open_input", open_input)
    assert made.to_arrow(columns=["ts"])["ts"].to_pylist() == [1, 1]
    assert not left


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("change", [archive, lambda table: table.restore(to=table.instants()[-2])], ids=["archived", "restored"])
def test_history_is_whole_while_instants_leave_the_timeline(
    table: LocalTable, change: Callable[[LocalTable], object], archived: bool
) -> None:
    state, known = table.state, {entry.instant for entry in history(table.state)}
    change(table)
    told = history(state, archived=archived)
    assert told == history(table.state, archived=archived)
    if archived and change is archive:
        assert {entry.instant for entry in told} >= known
    assert describe_table(state)["name"] == "t"
    assert at_one_moment(state, list_savepoints) == []


Moment = str | date | datetime
"""What bounds of changes are given as."""


@pytest.fixture
def appended() -> LocalTable:
    """Of four commits, each with one row: the number of the commit."""
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"]))
    made = LocalTable(storage)
    for number in range(4):
        made.insert(pa.table({"id": [number], "ts": [number]}, schema=SCHEMA))
    return made


@pytest.mark.parametrize("version", [6, 9])
def test_a_range_that_ends_before_it_begins_is_named_as_it_was_asked_for(version: int) -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], version=TableVersion(version)))
    table = LocalTable(storage)
    for number in range(2):
        table.insert(pa.table({"id": [number], "ts": [number]}, schema=SCHEMA))
    first, last = (one.requested_time for one in table.state.timeline.completed())
    with pytest.raises(OptionError, match=f"from {last} to {first} ends before it begins"):
        changed(table, last, first)


def changed(table: LocalTable, begin: Moment | None, end: Moment | None = None) -> list[int]:
    return sorted(table.read(["id"], query="incremental", begin=begin, end=end)["id"].to_pylist())


@pytest.mark.parametrize(
    "form",
    [
        parse_instant_time,
        lambda instant: parse_instant_time(instant).isoformat(" "),
        lambda instant: parse_instant_time(instant).replace(tzinfo=None).isoformat(),
        lambda instant: instant,
        lambda instant: "named",
        lambda instant: "-2",
    ],
    ids=["datetime", "text", "text without a zone", "instant", "savepoint", "-N"],
)
def test_changes_begin_after_a_moment_in_any_form_and_end_with_it(appended: LocalTable, form: Callable[[str], Moment]) -> None:
    second = appended.instants()[1]
    appended.savepoint(second, name="named")
    moment = form(second)
    assert (changed(appended, moment), changed(appended, None, moment)) == ([2, 3], [0, 1])
    assert changed(appended, appended.instants()[0], moment) == [1]


def test_a_moment_between_two_commits_parts_them(appended: LocalTable) -> None:
    third = parse_instant_time(appended.instants()[2]) - timedelta(milliseconds=1)
    for moment in (third, third.isoformat(" ")):
        assert (changed(appended, moment), changed(appended, None, moment)) == ([2, 3], [0, 1])


def test_a_date_is_its_first_moment_as_begin_and_as_end(appended: LocalTable) -> None:
    day = parse_instant_time(appended.instants()[0]).date()
    later = parse_instant_time(appended.instants()[-1]).date() + timedelta(days=1)
    for first, last in ((day, later), (str(day), str(later))):
        assert (changed(appended, first), changed(appended, None, first)) == ([0, 1, 2, 3], [])
        assert (changed(appended, last), changed(appended, None, last)) == ([], [0, 1, 2, 3])


@pytest.mark.parametrize("begin", ["earliest", "000", "0", "20200101", "20200101000000000"])
def test_words_and_digits_of_checkpoints_are_taken_as_they_are(appended: LocalTable, begin: str) -> None:
    assert changed(appended, begin) == [0, 1, 2, 3]


def test_a_bound_that_is_no_moment_is_refused_by_the_forms_there_are(appended: LocalTable) -> None:
    with pytest.raises(OptionError, match=r"'last tuesday' is no point in time.*savepoint"):
        changed(appended, "last tuesday")
    with pytest.raises(OptionError, match="none 9 before the newest"):
        changed(appended, None, "-9")
