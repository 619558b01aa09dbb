from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.services.compact import is_due
from lakehouse_engine.services.compact.triggers import TRIGGERS, Backlog, backlog_of
from lakehouse_engine.timeline.clock import InstantClock
from tests.unit.read.hand_made import HandMadeTable
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block
from tests.unit.services.compact.tables import T1, T2, T3, run_now, schedule_now, table_with_logs

MANY, FEW = 5, 4
LONG, SHORT = 3600.0, 3599.0

CASES = [
    ("NUM_COMMITS", [(MANY, 0, SHORT)], [(FEW, MANY, LONG)]),
    ("NUM_COMMITS_AFTER_LAST_REQUEST", [(FEW, MANY, SHORT)], [(MANY, FEW, LONG)]),
    ("TIME_ELAPSED", [(FEW, FEW, LONG)], [(MANY, MANY, SHORT)]),
    ("NUM_AND_TIME", [(MANY, FEW, LONG)], [(MANY, MANY, SHORT), (FEW, MANY, LONG)]),
    ("NUM_OR_TIME", [(MANY, FEW, SHORT), (FEW, FEW, LONG)], [(FEW, MANY, SHORT)]),
]


@pytest.mark.parametrize(("trigger", "due", "early"), CASES, ids=[case[0] for case in CASES])
def test_a_trigger_asks_at_its_bound_and_not_before(
    trigger: str, due: list[tuple[int, int, float]], early: list[tuple[int, int, float]]
) -> None:
    options = CompactionOptions(delta_commits=MANY, delta_seconds=int(LONG))
    assert all(TRIGGERS[trigger](Backlog(*numbers), options) for numbers in due)
    assert not any(TRIGGERS[trigger](Backlog(*numbers), options) for numbers in early)


def test_every_trigger_that_may_be_named_is_there() -> None:
    assert {case[0] for case in CASES} == set(TRIGGERS)
    assert {CompactionOptions.read({"hoodie.compact.inline.trigger.strategy": name}).trigger for name in TRIGGERS} == set(TRIGGERS)


def commits(table: HandMadeLogTable) -> tuple[int, int]:
    backlog = backlog_of(table.state())
    assert backlog is not None
    return backlog.commits, backlog.commits_since_request


def test_delta_commits_are_counted_from_the_last_compaction_and_from_its_request(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path)
    assert backlog_of(table.state()) is None
    table.append(T1, T1, 1, data_block(T1, {"k": 1}))
    table.append(T2, T1, 2, data_block(T2, {"k": 2}))
    assert commits(table) == (2, 2)
    scheduled = schedule_now(table).instant
    assert scheduled is not None
    assert commits(table) == (2, 0)
    later = InstantClock().next(table.state().timeline)
    table.append(later, scheduled, 1, data_block(later, {"k": 3}))
    assert commits(table) == (3, 1)
    run_now(table)
    assert commits(table) == (1, 1)


def test_time_counts_from_the_first_delta_commit_or_the_last_compaction(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path)
    table.append(T1, T1, 1, data_block(T1, {"k": 1}))
    backlog = backlog_of(table.state())
    assert backlog is not None
    assert backlog.seconds > 365 * 86_400
    schedule_now(table)
    run_now(table)
    backlog = backlog_of(table.state())
    assert backlog is not None
    assert 0 <= backlog.seconds < 3600


def test_nothing_is_due_without_logs(tmp_path: Path) -> None:
    (tmp_path / "cow").mkdir()
    copy_on_write = HandMadeTable(tmp_path / "cow")
    copy_on_write.write(T1, {"a": {"k": (T1, 1)}})
    assert not is_due(copy_on_write.state(), CompactionOptions(delta_commits=1))
    (tmp_path / "mor").mkdir()
    table = table_with_logs(tmp_path / "mor")
    assert is_due(table.state(), CompactionOptions(delta_commits=2))
    assert not is_due(table.state(), CompactionOptions(delta_commits=3))
    schedule_now(table)
    run_now(table)
    assert not is_due(table.state(), CompactionOptions(delta_commits=1))
    assert not is_due(table.state(), CompactionOptions(trigger="TIME_ELAPSED", delta_seconds=1))


def test_a_compaction_that_is_not_due_is_not_scheduled(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    assert schedule_now(table, CompactionOptions(delta_commits=3), when_due=True).instant is None
    assert schedule_now(table, CompactionOptions(delta_commits=2), when_due=True).instant is not None
    assert T3 in {instant.requested_time for instant in table.state().timeline}
