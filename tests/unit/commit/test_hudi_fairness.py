from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.concurrency.hudi_fairness import turn_of_hudi
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.repair.disorder import DisorderKind
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
    timeline = ActiveTimeline(table.storage, table.state.format)
    timeline.create_requested(instant, b"")
    return timeline.to_inflight(instant, table.state.format.encode_commit(HoodieCommitMetadata()))


def _hudi_commits(table: HoodieTable, inflight: Instant) -> None:
    path = "part=x/f-0_3-17-42_1.parquet"
    stat = HoodieWriteStat(file_id="f-0", path=path, partition_path="part=x", num_writes=1)
    metadata = HoodieCommitMetadata(partition_to_write_stats={"part=x": (stat,)})
    ActiveTimeline(table.storage, table.state.format).complete(inflight, table.state.format.encode_commit(metadata))


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


def _hudi_is_refused(table: HoodieTable) -> Instant:
    """Hudi ends the heartbeat, and takes the write back when it cleans the next time."""
    instant = _hudi_begins(table, 20)
    table.upsert(ROWS)
    table.storage.delete(heartbeat_file(instant.requested_time))
    return instant


def _grows_old(table: HoodieTable, instant: Instant) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        path = table.storage.local_path(f"{table.state.format.timeline_folder}/{table.state.format.file_name(instant.at(state))}")
        assert path is not None
        os.utime(path, (time.time() - 300,) * 2)


def _times(table: HoodieTable) -> list[str]:
    return [instant.requested_time for instant in table.timeline]


def test_a_refused_write_counts_as_overtaken_while_it_is_pending_and_when_it_was_taken_back(table: HoodieTable) -> None:
    first = _hudi_is_refused(table)
    table.upsert(ROWS)
    _hudi_begins(table, 0)
    assert 1 < turn_of_hudi(table.state) < 240
    _grows_old(table, first)
    assert HoodieTable.open(table.path, options={"hoodie.write.lock.wait_time_ms": 500}).upsert(ROWS).updates == 2
    assert first.requested_time not in _times(table)


def test_a_refused_write_is_left_to_hudi_until_it_is_old(table: HoodieTable) -> None:
    first = _hudi_is_refused(table)
    table.upsert(ROWS)
    assert first.requested_time in _times(table)
    assert [one.kind for one in table.repair(dry_run=True).left if one.what == first.requested_time] == [DisorderKind.AT_WORK]
    _grows_old(table, first)
    table.upsert(ROWS)
    assert first.requested_time not in _times(table)


def test_what_must_not_run_beside_hudi_waits_for_a_refused_write_and_names_it(table: HoodieTable) -> None:
    first = _hudi_is_refused(table)
    with pytest.raises(CommitConflictError, match="seen last") as refused:
        HoodieTable.open(table.path, options={"hoodie.write.lock.wait_time_ms": 300}).savepoint(name="x")
    assert refused.value.context["instant"] == first.requested_time
    _grows_old(table, first)
    assert table.savepoint(name="x").instant not in (None, first.requested_time)
    assert first.requested_time not in _times(table)


def test_a_hudi_that_was_overtaken_by_hudi_is_not_waited_for(table: HoodieTable) -> None:
    _hudi_begins(table, 20)
    _hudi_commits(table, _hudi_begins(table, 10))
    _hudi_begins(table, 0)
    assert turn_of_hudi(table.state) == 0
