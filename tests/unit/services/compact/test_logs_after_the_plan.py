"""What is logged to a group after its compaction was planned is on top of what the compaction makes, in every version."""

from __future__ import annotations

import logging

import pytest

from tests.unit.services.clean.tables import MOR, content, new_table, rows, updated
from tests.unit.services.versions import version

__all__ = ["version"]


def test_a_log_that_was_written_after_the_plan_is_not_compacted(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table(MOR)
    updated(table, 1)
    planned = table.schedule_compaction().instant
    assert planned is not None
    table.upsert(rows({1: 2}))
    with caplog.at_level(logging.WARNING):
        assert table.run_compaction().instant == planned
    assert "its plan is made anew" not in caplog.text
    (piece,) = table.state.view.latest_slices("part=a")
    assert (piece.base_instant, len(piece.log_files)) == (planned, 1)
    assert content(table, as_of=planned) == {1: 1, 2: 0}
    assert content(table) == {1: 2, 2: 0}
