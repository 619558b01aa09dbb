from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.courtesy import turn_of_hudi
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.timeline.lock import TableLock
from tests.unit.timeline.locks.tables import BESIDE_HUDI

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})  # in two partitions, so two tasks


@pytest.fixture(params=["cow", "mor"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"))
    made = lake.create_table(
        "s.t", schema=ROWS.schema, record_key=["id"], partition_by=["n"], table_type=request.param, properties=BESIDE_HUDI
    )
    made.upsert(ROWS)
    return made


def _hudi_begins(table: HoodieTable, seconds_ago: float) -> Instant:
    time = format_instant_time(datetime.now(UTC) - timedelta(seconds=seconds_ago))
    instant = Instant(time, Action.COMMIT, State.REQUESTED)
    table.storage.create(heartbeat_file(time), b"")
    timeline = ActiveTimeline(table.storage, table.state.layout)
    timeline.create_requested(instant, b"")
    return timeline.to_inflight(instant, table.state.layout.encode_commit(HoodieCommitMetadata()))


def _hudi_commits(table: HoodieTable, inflight: Instant) -> None:
    path = "part=x/f-0_3-17-42_1.parquet"
    stat = HoodieWriteStat(file_id="f-0", path=path, partition_path="part=x", num_writes=1)
    metadata = HoodieCommitMetadata(partition_to_write_stats={"part=x": (stat,)})
    ActiveTimeline(table.storage, table.state.layout).complete(inflight, table.state.layout.encode_commit(metadata))


def test_hudi_has_its_turn_after_one_of_its_writes_was_overtaken_and_another_began(table: HoodieTable) -> None:
    _hudi_begins(table, 20)
    assert turn_of_hudi(table.state) == 0  # one may not have been overtaken
    table.upsert(ROWS)
    assert turn_of_hudi(table.state) == 0  # nor one that was, for it is lost already
    second = _hudi_begins(table, 0)
    assert 1 < turn_of_hudi(table.state) < 240
    _hudi_commits(table, second)
    assert turn_of_hudi(table.state) == 0


def test_a_turn_is_over_after_twice_the_time_between_two_writes_of_hudi(table: HoodieTable) -> None:
    _hudi_begins(table, 0.05)
    table.upsert(ROWS)
    _hudi_begins(table, 0)
    deadline = time.monotonic() + 60
    assert turn_of_hudi(table.state) > 0
    while turn_of_hudi(table.state) > 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert time.monotonic() < deadline


def test_a_write_leaves_hudi_its_turn_for_as_long_as_it_may_wait_and_then_goes_on(table: HoodieTable) -> None:
    _hudi_begins(table, 100)
    table.upsert(ROWS)
    _hudi_begins(table, 0)
    began = time.monotonic()
    impatient = HoodieTable.open(table.path, options={"hoodie.write.lock.wait_time_ms": 500})
    assert impatient.upsert(ROWS).updates == 2
    assert time.monotonic() - began >= 0.5


def test_a_write_within_the_lock_waits_for_nobody_who_needs_that_lock(table: HoodieTable) -> None:
    _hudi_begins(table, 100)
    table.upsert(ROWS)
    _hudi_begins(table, 0)
    assert turn_of_hudi(table.state) > 100
    began = time.monotonic()
    with TableLock(table.storage, 60_000):
        assert HoodieTable.open(table.path).upsert(ROWS).updates == 2
        with pytest.raises(CommitConflictError, match="at work"):
            table.savepoint("s")
    assert time.monotonic() - began < 60


def test_a_refused_write_that_was_taken_back_counts_as_overtaken(table: HoodieTable) -> None:
    """Hudi 1.2.0 removes the heartbeat of a write that was refused."""
    first = _hudi_begins(table, 20)
    table.upsert(ROWS)
    table.storage.delete(heartbeat_file(first.requested_time))
    table.upsert(ROWS)
    assert first.requested_time not in [instant.requested_time for instant in table.timeline]
    _hudi_begins(table, 0)
    assert 1 < turn_of_hudi(table.state) < 240


def test_a_hudi_that_was_overtaken_by_hudi_is_not_waited_for(table: HoodieTable) -> None:
    _hudi_begins(table, 20)
    _hudi_commits(table, _hudi_begins(table, 10))
    _hudi_begins(table, 0)
    assert turn_of_hudi(table.state) == 0
