"""Which instant comes after which: by request (version 6) and by completion (versions 8 and 9)."""

from __future__ import annotations

import pytest

from lakehouse_engine.model.instant import Action, Instant, InstantRange, State
from lakehouse_engine.model.order import (
    NEVER,
    Order,
    earliest,
    in_time_order,
    is_between,
    is_later,
    just_after,
    just_before,
    latest,
)
from lakehouse_engine.timeline.timeline import Timeline


def at(number: int) -> str:
    return f"{20260101000000000 + number}"


FIRST, COMPACTION, DELTA, PENDING = at(1), at(3), at(4), at(6)
MOMENTS = {FIRST: at(2), DELTA: at(5), COMPACTION: at(8), PENDING: NEVER}
"""The compaction was requested before the delta commit and completed after it."""
BY_REQUEST, BY_COMPLETION = Order.by_request(), Order.by_completion(MOMENTS)


def test_by_request_an_instant_shows_at_its_own_time() -> None:
    assert not BY_REQUEST.goes_by_completion
    assert [BY_REQUEST.moment(time) for time in MOMENTS] == list(MOMENTS)
    assert BY_REQUEST.is_after(DELTA, COMPACTION)
    assert not BY_REQUEST.is_after(COMPACTION, DELTA)
    assert BY_REQUEST.sorted(MOMENTS) == [FIRST, COMPACTION, DELTA, PENDING]
    assert (BY_REQUEST.oldest(MOMENTS), BY_REQUEST.newest(MOMENTS)) == (FIRST, PENDING)


def test_by_completion_a_compaction_comes_after_a_delta_commit_that_was_requested_later_and_completed_first() -> None:
    assert BY_COMPLETION.goes_by_completion
    assert BY_COMPLETION.moment(COMPACTION) == at(8)
    assert BY_COMPLETION.is_after(COMPACTION, DELTA)
    assert not BY_COMPLETION.is_after(DELTA, COMPACTION)
    assert BY_COMPLETION.sorted(MOMENTS) == [FIRST, DELTA, COMPACTION, PENDING]
    assert BY_COMPLETION.sorted(MOMENTS, newest_first=True) == [PENDING, COMPACTION, DELTA, FIRST]
    assert BY_COMPLETION.newest([COMPACTION, DELTA]) == COMPACTION
    assert BY_COMPLETION.oldest([COMPACTION, DELTA]) == DELTA


@pytest.mark.parametrize("order", [BY_REQUEST, BY_COMPLETION])
def test_nothing_comes_after_itself(order: Order) -> None:
    assert not any(order.is_after(time, time) for time in MOMENTS)


def test_what_shows_at_a_moment_was_completed_by_then() -> None:
    assert [time for time in MOMENTS if BY_COMPLETION.is_visible(time, at(7))] == [FIRST, DELTA]
    assert [time for time in MOMENTS if BY_COMPLETION.is_visible(time, at(8))] == [FIRST, DELTA, COMPACTION]
    assert not BY_COMPLETION.is_visible(DELTA, DELTA)  # it was requested then
    assert BY_COMPLETION.is_visible(DELTA, BY_COMPLETION.moment(DELTA))
    assert [time for time in MOMENTS if BY_REQUEST.is_visible(time, DELTA)] == [FIRST, DELTA, COMPACTION]
    assert all(BY_COMPLETION.is_visible(time, None) for time in MOMENTS)


def test_a_pending_instant_comes_after_all_completed_ones_and_shows_at_no_moment() -> None:
    completed = [time for time in MOMENTS if time != PENDING]
    assert all(BY_COMPLETION.is_after(PENDING, time) for time in completed)
    assert not any(BY_COMPLETION.is_after(time, PENDING) for time in completed)
    assert not BY_COMPLETION.is_visible(PENDING, at(99))


def test_an_instant_without_a_trace_shows_at_its_requested_time() -> None:
    assert BY_COMPLETION.moment(at(0)) == at(0)
    assert BY_COMPLETION.is_after(FIRST, at(0))


def test_a_window_begins_after_its_begin_and_has_its_end() -> None:
    window = InstantRange(at(5), at(8))
    assert [time for time in MOMENTS if BY_COMPLETION.is_within(time, window)] == [COMPACTION]
    assert [time for time in MOMENTS if BY_REQUEST.is_within(time, window)] == [PENDING]
    assert is_between(at(5), None, None)
    assert is_between(at(5), at(4), at(5))
    assert not is_between(at(5), at(5), None)
    assert not is_between(at(5), None, at(4))


def test_of_none_there_is_no_newest() -> None:
    assert BY_REQUEST.newest([]) is BY_COMPLETION.oldest([]) is None
    assert (latest([]), earliest([])) == ("", None)


def test_plain_times_are_compared_as_texts() -> None:
    assert is_later(at(2), at(1))
    assert not is_later(at(1), at(1))
    assert is_later(at(1), "")
    assert not is_later("", at(1))
    assert (latest([at(1), at(3), at(2)]), earliest([at(2), at(1)])) == (at(3), at(1))
    pairs = [(at(2), "b"), (at(1), "z"), (at(2), "a")]
    assert in_time_order(pairs, lambda pair: pair[0]) == [pairs[1], pairs[0], pairs[2]]
    assert in_time_order(pairs, lambda pair: pair[0], newest_first=True) == [pairs[0], pairs[2], pairs[1]]


@pytest.mark.parametrize("time", ["20260101000000000", "20260101000000", "00000000000001000"])
def test_bounds_lie_right_beside_a_time(time: str) -> None:
    assert len(just_before(time)) == len(time)
    assert int(just_before(time)) == int(time) - 1
    assert is_later(time, just_before(time))
    assert is_later(just_after(time), time)
    assert is_later(str(int(time) + 1).zfill(len(time)), just_after(time))


def test_a_timeline_selects_by_its_order() -> None:
    states = [
        Instant(FIRST, Action.DELTA_COMMIT, State.COMPLETED),
        Instant(COMPACTION, Action.COMMIT, State.COMPLETED),
        Instant(DELTA, Action.DELTA_COMMIT, State.COMPLETED),
        Instant(PENDING, Action.DELTA_COMMIT, State.INFLIGHT),
    ]
    by_request = Timeline.of_states(states)
    by_completion = Timeline(by_request.instants, order=BY_COMPLETION)

    def times(timeline: Timeline) -> set[str]:
        return {one.requested_time for one in timeline}

    assert times(by_request.newer_than(DELTA)) == {PENDING}
    assert times(by_completion.newer_than(DELTA)) == {COMPACTION, PENDING}
    assert times(by_request.older_than(DELTA)) == {FIRST, COMPACTION}
    assert times(by_completion.older_than(DELTA)) == {FIRST}
    assert times(by_completion.up_to(at(5))) == {FIRST, DELTA}
    assert times(by_completion.after(at(5))) == {COMPACTION, PENDING}
    assert times(by_completion.completed().newer_than(DELTA)) == {COMPACTION}
    assert times(by_completion.as_restored(DELTA)) == {FIRST, DELTA}
    assert times(by_request.as_restored(DELTA)) == {FIRST, COMPACTION, DELTA}
