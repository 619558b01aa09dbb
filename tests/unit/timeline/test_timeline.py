from __future__ import annotations

import pytest

from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.timeline.timeline import Timeline

C, D, R = Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT


def at(number: int) -> str:
    return f"{20260101000000000 + number}"


def instant(number: int, action: Action = C, state: State = State.COMPLETED) -> Instant:
    return Instant(at(number), action, state)


def test_state_files_group_to_the_highest_state_in_time_order() -> None:
    states = [instant(2, C, state) for state in (State.INFLIGHT, State.REQUESTED)] + [instant(1, C, state) for state in State]
    assert Timeline.of_states(states).instants == (instant(1), instant(2, C, State.INFLIGHT))


def test_compaction_is_of_the_family_of_its_commit() -> None:
    states = [
        instant(1, Action.COMPACTION, State.REQUESTED),
        instant(1, Action.COMPACTION, State.INFLIGHT),
        instant(1, C),
        instant(2, Action.LOG_COMPACTION, State.INFLIGHT),
        instant(2, D),
        instant(3, Action.COMPACTION, State.REQUESTED),
    ]
    assert Timeline.of_states(states).instants == (instant(1), instant(2, D), instant(3, Action.COMPACTION, State.REQUESTED))


def test_savepoint_and_commit_of_one_time_are_two_entries_and_find_gives_the_commit() -> None:
    timeline = Timeline.of_states([instant(1, Action.SAVEPOINT), instant(1)])
    assert timeline.instants == (instant(1), instant(1, Action.SAVEPOINT))
    assert timeline.find(at(1)) == instant(1)
    assert timeline.savepointed == {at(1)}


def test_selections_keep_what_they_say() -> None:
    timeline = Timeline.of_states([instant(1), instant(2, Action.CLEAN), instant(3, D, State.INFLIGHT), instant(4, R)])
    assert [entry.requested_time for entry in timeline.completed()] == [at(1), at(2), at(4)]
    assert [entry.requested_time for entry in timeline.pending()] == [at(3)]
    assert [entry.requested_time for entry in timeline.writes()] == [at(1), at(3), at(4)]
    assert [entry.requested_time for entry in timeline.up_to(at(3))] == [at(1), at(2), at(3)]
    assert [entry.requested_time for entry in timeline.after(at(3))] == [at(4)]
    assert timeline.first() == instant(1)
    assert timeline.last() == instant(4, R)
    assert timeline.contains(at(2))
    assert not timeline.contains(at(5))
    assert timeline.find(at(5)) is None
    assert len(timeline) == 4


def test_empty_timeline_has_neither_ends_nor_committed_instants() -> None:
    timeline = Timeline()
    assert timeline.first() is timeline.last() is timeline.start is None
    assert not timeline.is_committed(at(1))


def test_older_than_the_start_counts_as_committed_and_unknown_or_pending_does_not() -> None:
    timeline = Timeline.of_states([instant(1, Action.CLEAN), instant(5), instant(7, C, State.INFLIGHT), instant(9)])
    assert timeline.start == instant(5)
    assert timeline.is_committed(at(3))
    assert timeline.is_committed(at(5))
    assert not timeline.is_committed(at(6))
    assert not timeline.is_committed(at(7))
    assert timeline.is_committed(at(9))
    assert not timeline.is_committed(at(10))


def test_pending_first_write_is_the_start_so_that_its_files_stay_invisible() -> None:
    timeline = Timeline.of_states([instant(5, C, State.INFLIGHT), instant(9)])
    assert not timeline.is_committed(at(5))
    assert timeline.is_committed(at(4))


def test_savepointed_commit_is_not_the_start_so_that_archived_ones_after_it_stay_visible() -> None:
    timeline = Timeline.of_states([instant(1), instant(1, Action.SAVEPOINT), instant(9)])
    assert timeline.start == instant(9)
    assert timeline.is_committed(at(5))


def test_only_savepointed_commits_left_makes_the_first_of_them_the_start() -> None:
    timeline = Timeline.of_states([instant(5), instant(5, Action.SAVEPOINT)])
    assert timeline.start == instant(5)
    assert timeline.is_committed(at(4))
    assert not timeline.is_committed(at(6))


@pytest.mark.parametrize("state", [State.INFLIGHT, State.REQUESTED])
def test_pending_savepoint_pins_nothing(state: State) -> None:
    assert Timeline.of_states([instant(1), instant(1, Action.SAVEPOINT, state)]).savepointed == frozenset()
