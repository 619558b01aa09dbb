"""Instants of tables whose writers are in another zone, whose clocks were wrong, or whose storage has another time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine.cli.main import cli
from lakehouse_engine.commit import table_clock
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import LakehouseError, PropertiesError, TimelineError
from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.registry import prepare
from lakehouse_engine.sql.router import route
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.timeline.clock import InstantClock
from tests.support.untouched import OPTIONS, files_below, make_table, refused

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
LOCAL = {"hoodie.table.timeline.timezone": "LOCAL"}


def row(number: int, v: int = 1) -> pa.Table:
    return pa.table({"id": [number], "v": [v]}, schema=SCHEMA)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process into a zone."""

    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_clock, "_TOLD", set())
    monkeypatch.setattr(clock._PROCESS, "by_clock", {})


def ahead_of_utc(instant: str) -> timedelta:
    return parse_instant_time(instant) - datetime.now(UTC)


def local_table(path: Path, **spec: Any) -> HoodieTable:
    make_table(path, SCHEMA, **spec)
    file = path / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    file.write_text("\n".join(line.replace("timezone=UTC", "timezone=LOCAL") for line in lines) + "\n")
    return HoodieTable.open(str(path), options=OPTIONS)


def write(table: HoodieTable, number: int, **options: Any) -> str:
    result = table.upsert(row(number), **options)
    assert result.instant is not None
    return result.instant


def test_a_zone_that_hudi_has_not_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = local_table(tmp_path / "t")
    file = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    file.write_text(file.read_text().replace("timezone=LOCAL", "timezone=Europe/Berlin"))
    before = files_below(tmp_path / "t" / ".hoodie")
    with pytest.raises(PropertiesError, match="'EUROPE/BERLIN' is neither UTC nor LOCAL"):
        HoodieTable.open(table.path, options=OPTIONS).upsert(row(1))
    assert files_below(tmp_path / "t" / ".hoodie") == before


def test_process_in_tokyo_goes_on_in_the_zone_of_the_writers_of_a_local_table(
    zone: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    zone("UTC")
    table = local_table(tmp_path / "t")
    for number in (1, 2):
        write(table, number)
    zone("Asia/Tokyo")
    with caplog.at_level(logging.WARNING):
        instant = write(table, 3)
    assert abs(ahead_of_utc(instant)) < timedelta(minutes=10)
    assert "going on in theirs" in caplog.text
    table.rollback()
    table.savepoint()
    table.clean()
    assert all(abs(ahead_of_utc(entry.requested_time)) < timedelta(minutes=10) for entry in table.timeline)
    zone("UTC")
    assert abs(ahead_of_utc(write(table, 4))) < timedelta(minutes=10)


@pytest.mark.parametrize("writers", ["Asia/Tokyo", "America/New_York"])
def test_a_datetime_with_a_zone_is_a_point_in_time_for_readers_of_a_local_table(
    zone: Callable[[str], None], tmp_path: Path, writers: str
) -> None:
    zone(writers)
    table = local_table(tmp_path / "t")
    moments = [datetime.now(UTC)]
    for number in (1, 2, 3):
        time.sleep(0.005)
        write(table, number)
        time.sleep(0.005)
        moments.append(datetime.now(UTC))
    for reader in (writers, "UTC", "Europe/Berlin"):
        zone(reader)
        for count, moment in enumerate(moments):
            for same in (moment, moment.astimezone()):
                assert table.to_arrow(as_of=same).num_rows == count
                assert table.to_arrow(query="incremental", begin=same).num_rows == 3 - count
                assert table.to_arrow(query="incremental", begin="earliest", end=same).num_rows == count
    assert table.to_arrow(as_of=datetime.max.replace(tzinfo=UTC)).num_rows == 3
    assert table.to_arrow(as_of=datetime.min.replace(tzinfo=UTC)).num_rows == 0


def test_process_in_utc_goes_on_in_the_zone_of_writers_in_tokyo(zone: Callable[[str], None], tmp_path: Path) -> None:
    zone("Asia/Tokyo")
    table = local_table(tmp_path / "t")
    for number in (1, 2):
        write(table, number)
    zone("UTC")
    assert abs(ahead_of_utc(write(table, 3)) - timedelta(hours=9)) < timedelta(minutes=10)


def test_local_table_without_instants_has_the_zone_of_its_first_writer(zone: Callable[[str], None], tmp_path: Path) -> None:
    zone("Asia/Tokyo")
    assert abs(ahead_of_utc(write(local_table(tmp_path / "t"), 1)) - timedelta(hours=9)) < timedelta(minutes=10)


def test_table_in_utc_has_utc_in_any_zone(zone: Callable[[str], None], tmp_path: Path) -> None:
    zone("Asia/Tokyo")
    assert abs(ahead_of_utc(write(make_table(tmp_path / "t", SCHEMA), 1))) < timedelta(minutes=10)


# clocks


@pytest.fixture
def jumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HoodieTable:
    """A table with a commit of now, a savepoint on it, and one of a clock that was ten years ahead, files and all."""
    table = make_table(tmp_path / "t", SCHEMA)
    table.upsert(row(1))
    table.savepoint(name="before")
    later = timedelta(days=3653)
    with monkeypatch.context() as patched:
        patched.setattr(table_clock, "SKEW_REFUSED", timedelta(days=9999))
        patched.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=lambda: datetime.now(UTC) + later))
        write(table, 2)
    ten_years = (datetime.now(UTC) + later).timestamp()
    for path in (tmp_path / "t" / ".hoodie").iterdir():
        if path.name.startswith("203"):
            os.utime(path, (ten_years, ten_years))
    return HoodieTable.open(table.path, options=OPTIONS)


CHANGES: dict[str, Callable[[HoodieTable], Any]] = {
    "upsert": lambda table: table.upsert(row(3)),
    "rollback": lambda table: table.rollback(),
    "restore": lambda table: table.restore("before"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_future_is_refused_with_both_ways_out_and_read(change: str, jumped: HoodieTable, tmp_path: Path) -> None:
    refused(tmp_path, TimelineError, lambda: CHANGES[change](jumped), r"repair --accept-future.*|restore --accept-future")
    assert jumped.to_arrow().num_rows == 2


def test_repair_tells_of_the_future_and_lets_everything_go_on_from_it(jumped: HoodieTable, tmp_path: Path) -> None:
    newest = jumped.timeline.instants[-1].requested_time
    (told,) = jumped.repair().left
    assert (str(told.kind), told.what) == ("future_instant", newest)
    before = files_below(tmp_path)
    assert [one.what for one in jumped.repair(dry_run=True, accept_future=True).repaired] == [newest]
    assert files_below(tmp_path) == before
    assert [one.what for one in jumped.repair(accept_future=True).repaired] == [newest]
    table = HoodieTable.open(jumped.path, options=OPTIONS)
    following = write(table, 3)
    assert parse_instant_time(following) - parse_instant_time(newest) < timedelta(seconds=1)
    table.clean(retain_commits=1)
    table.rollback()
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2]
    assert table.repair().left == ()


def test_restore_leads_out_of_the_future(jumped: HoodieTable) -> None:
    assert jumped.restore("before", accept_future=True).rolled_back
    assert jumped.to_arrow().to_pylist() == row(1).to_pylist()
    write(jumped, 5)
    assert sorted(jumped.to_arrow().column("id").to_pylist()) == [1, 5]


@pytest.mark.parametrize("target", [{"savepoint": "after"}, {"to": "20990101000000000"}, {}])
def test_a_restore_that_is_refused_does_not_accept_the_future(target: dict[str, str], jumped: HoodieTable, tmp_path: Path) -> None:
    refused(tmp_path, LakehouseError, lambda: jumped.restore(**target, accept_future=True))
    refused(tmp_path, TimelineError, lambda: jumped.upsert(row(3)), "accept-future")


def called(table: HoodieTable, text: str) -> list[dict[str, Any]]:
    statement = route(text, lambda parts: False)
    assert isinstance(statement, Call)
    return prepare(statement).answer(table.services).to_pylist()


def test_procedures_lead_out_of_the_future(jumped: HoodieTable) -> None:
    with pytest.raises(TimelineError, match="accept_future"):
        called(jumped, "call rollback_to_savepoint('a.b', 'before')")
    (left,) = called(jumped, "call repair_table('a.b')")
    assert (left["result"], left["disorder"]) == ("left", "future_instant")
    (done,) = called(jumped, "call rollback_to_savepoint(table => 'a.b', instant_time => 'before', accept_future => true)")
    assert done["rollback_savepoint_result"]
    write(jumped, 5)
    assert sorted(jumped.to_arrow().column("id").to_pylist()) == [1, 5]


def test_a_repair_by_a_procedure_goes_on_from_the_future(jumped: HoodieTable) -> None:
    (would,) = called(jumped, "call repair_table('a.b', accept_future => true, dry_run => true)")
    assert would["result"] == "would be repaired"
    (done,) = called(jumped, "call repair_table('a.b', accept_future => true)")
    assert (done["result"], done["disorder"]) == ("repaired", "future_instant")
    write(jumped, 3)


def test_accepted_future_is_no_leave_for_another_jump(jumped: HoodieTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jumped.repair(accept_future=True)
    later = timedelta(days=2 * 3653)
    with monkeypatch.context() as patched:
        patched.setattr(table_clock, "SKEW_REFUSED", timedelta(days=9999))
        patched.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=lambda: datetime.now(UTC) + later))
        write(jumped, 3)
    refused(tmp_path, TimelineError, lambda: jumped.upsert(row(4)), "ahead of this machine's clock")


def test_command_line_leads_out_too(jumped: HoodieTable) -> None:
    run = CliRunner().invoke(cli, ["repair", jumped.path, "--accept-future"])
    assert run.exit_code == 0, run.output
    assert "future_instant" in run.output
    write(jumped, 3)


def test_table_in_order_has_nothing_to_accept(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    write(table, 1)
    before = files_below(tmp_path)
    assert table.repair(accept_future=True).repaired == ()
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("hours", [-24 * 3653, -1, 1, 24 * 3653])
def test_clock_that_differs_from_that_of_the_storage_is_refused_before_anything_is_written(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    wrong = lambda: datetime.now(UTC) + timedelta(hours=hours)  # noqa: E731
    monkeypatch.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=wrong, **more))
    refused(tmp_path, TimelineError, lambda: table.upsert(row(1)), "that of the table's storage .* correct")
    assert len(table.timeline) == 0


ACTIONS: dict[str, Callable[[HoodieTable], object]] = {
    "clean": lambda table: table.clean(retain_commits=1),
    "compact": lambda table: table.compact("schedule"),
    "rollback": lambda table: table.rollback(),
    "restore": lambda table: table.restore(to=table.history()[-1].instant),
}


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("action", ACTIONS)
def test_services_and_ways_back_are_refused_too_where_the_clock_differs_from_that_of_the_storage(
    action: str, hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path / "t", SCHEMA, table_type="mor" if action == "compact" else "cow")
    for version in range(3):
        table.upsert(row(1, version))
    before = len(table.timeline)
    wrong = lambda: datetime.now(UTC) + timedelta(hours=hours)  # noqa: E731
    monkeypatch.setattr(clock._PROCESS, "by_clock", {})
    monkeypatch.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=wrong, **more))
    refused(tmp_path, TimelineError, lambda: ACTIONS[action](table), "that of the table's storage .* correct")
    assert len(table.timeline) == before


def test_dead_write_is_not_taken_back_under_a_clock_that_differs_from_that_of_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    table.upsert(row(1))
    done = str(table.history()[0].instant)
    (tmp_path / "t" / ".hoodie" / f"{int(done) + 1}.commit.requested").touch()
    wrong = lambda: datetime.now(UTC) + timedelta(hours=1)  # noqa: E731
    monkeypatch.setattr(clock._PROCESS, "by_clock", {})
    monkeypatch.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=wrong, **more))
    refused(tmp_path, TimelineError, lambda: table.clean(retain_commits=1), "that of the table's storage .* correct")
    monkeypatch.undo()
    table.clean(retain_commits=1)
    assert not table.timeline.pending()
