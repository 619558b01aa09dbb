"""Rollbacks that another process began and did not finish."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.commit.rollback import plan
from lakehouse_engine.commit.rollback.blocks import listed_logs
from lakehouse_engine.commit.rollback.plan import plan_rollback
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRollbackPlan, HoodieRollbackRequest
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from tests.support.table_builder import TableBuilder, rich_row


def test_a_rollback_of_a_published_commit_is_finished_before_the_next_write(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t")
    built.insert([rich_row(1), rich_row(2)])
    built.upsert([rich_row(2, seed=1), rich_row(3)])
    state = built.table.state
    taken_back = state.timeline.completed().last()
    assert taken_back is not None
    requested = Instant(InstantClock().next(state.timeline), Action.ROLLBACK, State.REQUESTED)
    ActiveTimeline(state.storage, state.format).create_requested(requested, encode_plan(plan_rollback(state, taken_back)))
    del built.model.snapshots[taken_back.requested_time]
    built.model.stored = dict(next(iter(built.model.snapshots.values())))
    built.upsert([rich_row(5)])
    built.check()
    assert built.table.timeline.find(taken_back.requested_time) is None
    assert not list(built.path.rglob(f"*_{taken_back.requested_time}.parquet"))


def test_a_rollback_whose_logs_are_gone_leaves_no_file_of_its_own(tmp_path: Path) -> None:
    """A restore of Hudi's that stops half-way leaves rollbacks behind, which are younger than it is and finished after it."""
    built = TableBuilder.create(tmp_path / "t", table_type="mor", ordering="ts", index="SIMPLE")
    first = built.insert([rich_row(1), rich_row(2)]).instant
    assert first is not None
    built.table.savepoint()
    built.upsert([rich_row(2, seed=1)])
    built.table.compact()
    state = built.table.state
    group = state.view.latest_slices()[0].group
    lost = built.upsert([rich_row(1, seed=2)]).instant
    assert lost is not None
    slice_of_compaction = built.table.state.view.latest_slices()[0]
    log = slice_of_compaction.log_files[0]
    built.table.restore(first)
    built.model.go_back(first)

    request = HoodieRollbackRequest(
        partition_path=group.partition_path,
        file_id=group.file_id,
        latest_base_instant=slice_of_compaction.base_instant,
        log_blocks_to_be_deleted={log.path: 1},
    )
    stored = HoodieRollbackPlan(instant_to_rollback=HoodieInstantInfo(commit_time=lost, action="deltacommit"), rollback_requests=(request,))
    state = built.table.state
    requested = Instant(InstantClock().next(state.timeline), Action.ROLLBACK, State.REQUESTED)
    ActiveTimeline(state.storage, state.format).create_requested(requested, encode_plan(stored))
    built.upsert([rich_row(2, seed=3)])
    built.check()
    names = {path.name.partition("_")[2].partition(".log")[0] for path in built.path.glob(".*.log.*")}
    assert names == {first}


def test_a_log_that_its_writer_takes_back_meanwhile_does_not_keep_a_rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers without the lock remove what they logged, while a write that died without markers is looked for in every log."""
    built = TableBuilder.create(tmp_path / "t", table_type="mor", ordering="ts")
    built.insert([rich_row(1), rich_row(2)])
    built.upsert([rich_row(2, seed=1)])
    state = built.table.state
    [log] = built.path.rglob(".*.log.*")
    theirs = log.with_name(log.name.replace(".log.1_", ".log.2_"))
    theirs.write_bytes(log.read_bytes())
    dead = Instant(InstantClock().next(state.timeline), Action.DELTA_COMMIT, State.REQUESTED)
    state.active.to_inflight(state.active.create_requested(dead))

    def listed(storage: Storage, partition: str) -> list[LogFile]:
        found = list(listed_logs(storage, partition))
        theirs.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(plan, "listed_logs", listed)
    built.upsert([rich_row(3)])
    assert not theirs.exists()
    assert built.table.timeline.find(dead.requested_time) is None
    built.check()
