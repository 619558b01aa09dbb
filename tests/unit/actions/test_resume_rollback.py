"""Rollbacks that another process began and did not finish."""

from __future__ import annotations

from pathlib import Path

from lakehouse_engine.actions.rollback.plan import plan_rollback
from lakehouse_engine.format.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
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
    ActiveTimeline(state.storage, state.layout).create_requested(requested, encode_plan(plan_rollback(state, taken_back)))
    del built.model.snapshots[taken_back.requested_time]
    built.model.stored = dict(next(iter(built.model.snapshots.values())))
    built.upsert([rich_row(5)])
    built.check()
    assert built.table.timeline.find(taken_back.requested_time) is None
    assert not list(built.path.rglob(f"*_{taken_back.requested_time}.parquet"))
