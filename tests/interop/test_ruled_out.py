"""A commit that never came has an empty one in its place: Hudi reads past it, also when we have gone on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.commit.fence_lost_commit import rule_out
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from tests.interop.client import HudiJudge
from tests.interop.tables import check_answers, keyed
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder, rich_row

ACTIONS = {"cow": (Action.COMMIT, Action.REPLACE_COMMIT), "mor": (Action.DELTA_COMMIT, Action.REPLACE_COMMIT)}


def put_empty(built: TableBuilder, action: Action) -> None:
    """What a write leaves that is ruled out when all of it but the commit was there, and its files are gone again."""
    state = built.table.state
    timeline, time = ActiveTimeline(state.storage, state.format), InstantClock(state.config.timeline_timezone).next(state.timeline)
    requested = Instant(time, action, State.REQUESTED)
    timeline.create_requested(requested)
    operation = "INSERT_OVERWRITE" if action is Action.REPLACE_COMMIT else "UPSERT"
    inflight = timeline.to_inflight(requested, state.format.encode_commit(HoodieCommitMetadata(operation_type=operation)))
    assert rule_out(built.table.state, inflight, None)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_past_an_empty_commit(hudi: HudiJudge, tmp_path: Path, kind: str) -> None:
    built = keyed("simple", ["id"], ["region"], table_type=kind)(tmp_path)
    before = built.table.to_arrow()
    for action in ACTIONS[kind]:
        put_empty(built, action)
    assert_same_rows(built.table.to_arrow(), before)
    check_answers(hudi, built, "simple")
    built.upsert([rich_row(number, seed=900) for number in range(4)])
    read = built.check_snapshot()
    assert_same_rows(read_with_hudi_rs(built.path), read)
    check_answers(hudi, built, "simple")
