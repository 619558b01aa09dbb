"""Beside a writer of Hudi that completes an instant after a later one, nothing is answered that can change, and nothing is missed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import UnsettledInstantError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import just_before
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.timeline.locks.settings import lock_options
from tests.unit.timeline.locks.tables import BESIDE_HUDI

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{one}" for one in ids]}, schema=SCHEMA)


class Overtaken:
    """A table with three commits, the second of which is under way still: its instant is older than the third."""

    def __init__(self, path: Path, kind: str) -> None:
        self.table = Lakehouse(str(path)).create_table("s.t", schema=SCHEMA, record_key=["id"], table_type=kind, properties=BESIDE_HUDI)
        self.first, self.second, self.third = (self._write(number) for number in (1, 2, 3))
        self.action = Action.COMMIT if kind == "cow" else Action.DELTA_COMMIT
        self._file = self.table.state.format.file_name(Instant(self.second, self.action, State.COMPLETED))
        self._commit = self.table.storage.read(f".hoodie/{self._file}")
        self.table.storage.delete(f".hoodie/{self._file}")

    def _write(self, number: int) -> str:
        instant = self.table.bulk_insert(rows(number)).instant
        assert instant is not None
        return instant

    def beat(self, seconds_ago: int = 0) -> None:
        """As Hudi does: a file without content."""
        path = heartbeat_file(self.second)
        self.table.storage.overwrite(path, b"")
        then = os.stat(f"{self.table.path}/{path}").st_mtime - seconds_ago
        os.utime(f"{self.table.path}/{path}", (then, then))

    def complete(self) -> None:
        self.table.storage.create(f".hoodie/{self._file}", self._commit)
        self.table.storage.delete(heartbeat_file(self.second))

    def changes(self, begin: str | None = None, end: str | None = None) -> list[int]:
        return sorted(self.table.to_arrow(["id"], query="incremental", begin=begin, end=end)["id"].to_pylist())


@pytest.fixture(params=["cow", "mor"])
def overtaken(request: pytest.FixtureRequest, tmp_path: Path) -> Overtaken:
    made = Overtaken(tmp_path, request.param)
    made.beat()
    return made


def ids(table: HoodieTable, as_of: str | None = None) -> list[int]:
    return sorted(table.to_arrow(["id"], as_of=as_of)["id"].to_pylist())


def test_a_reader_by_checkpoint_waits_for_the_write_under_way_and_then_has_all(overtaken: Overtaken) -> None:
    assert ids(overtaken.table) == [1, 3]
    assert overtaken.changes() == [1]
    assert overtaken.changes(overtaken.first) == []
    overtaken.complete()
    assert overtaken.changes(overtaken.first) == [2, 3]


def test_what_can_change_yet_is_refused_by_the_name_of_the_write_under_way(overtaken: Overtaken) -> None:
    for moment in (overtaken.second, overtaken.third):
        with pytest.raises(UnsettledInstantError) as refused:
            ids(overtaken.table, moment)
        assert overtaken.second in str(refused.value)
    with pytest.raises(UnsettledInstantError):
        overtaken.changes(end=overtaken.third)
    assert ids(overtaken.table, overtaken.first) == [1]
    assert ids(overtaken.table, just_before(overtaken.second)) == [1]
    assert ids(overtaken.table, "2999-01-01") == [1, 3]
    assert overtaken.changes(end=overtaken.first) == [1]
    overtaken.complete()
    assert ids(overtaken.table, overtaken.third) == [1, 2, 3]


def test_steps_back_count_from_below_the_write_under_way(overtaken: Overtaken) -> None:
    assert ids(overtaken.table, "-0") == [1]
    overtaken.complete()
    assert ids(overtaken.table, "-0") == [1, 2, 3]


def test_a_reader_that_is_past_it_already_goes_on(overtaken: Overtaken) -> None:
    overtaken.table.bulk_insert(rows(4))
    assert overtaken.changes(overtaken.second) == [3, 4]
    assert overtaken.changes(overtaken.third) == [4]


def test_a_dead_writer_holds_nobody_up(overtaken: Overtaken) -> None:
    overtaken.beat(seconds_ago=10 * lock_options(overtaken.table.config).tolerated_ms // 1000)
    assert overtaken.changes() == [1, 3]
    assert ids(overtaken.table, overtaken.third) == [1, 3]
    overtaken.table.storage.delete(heartbeat_file(overtaken.second))
    assert ids(overtaken.table, "-0") == [1, 3]


def test_plans_of_services_are_no_writes(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor")
    table.upsert(rows(1, 2))
    table.upsert(rows(1))
    assert table.compact("schedule", options={"hoodie.compact.inline.max.delta.commits": "1"}).instant is not None
    last = table.upsert(rows(3)).instant
    assert ids(table, last) == [1, 2, 3]
    assert sorted(table.to_arrow(["id"], query="incremental")["id"].to_pylist()) == [1, 2, 3]
