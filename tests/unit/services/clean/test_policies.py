"""Which versions each policy keeps, from instant times alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import NEVER, Order
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.services.clean.policies import KeepSince, KeepVersions, retention
from lakehouse_engine.timeline.timeline import Timeline

TIMES = [f"202601010000{second:02d}000" for second in range(20)]
NOW = "20260102000000000"


def commits(count: int, *others: Instant) -> Timeline:
    return Timeline.of_states([*(Instant(time, Action.COMMIT, State.COMPLETED) for time in TIMES[:count]), *others])


def earliest(timeline: Timeline, **options: object) -> str | None:
    found = retention(timeline, CleanOptions(**options), NOW).earliest  # type: ignore[arg-type]
    return found.requested_time if found else None


def test_commits_keep_the_last_of_them_and_nothing_is_cleaned_before_there_are_more() -> None:
    assert earliest(commits(5), commits_retained=3) == TIMES[2]
    kept = retention(commits(3), CleanOptions(commits_retained=3), NOW)
    assert kept.policy is None


def test_hours_count_back_from_now_and_the_newest_commit_stays_the_earliest_however_old_it_is() -> None:
    timeline = commits(3, Instant("20260101230000000", Action.COMMIT, State.COMPLETED))
    assert earliest(timeline, policy="KEEP_LATEST_BY_HOURS", hours_retained=2) == "20260101230000000"
    assert earliest(timeline, policy="KEEP_LATEST_BY_HOURS", hours_retained=48) == TIMES[0]
    assert earliest(timeline, policy="KEEP_LATEST_BY_HOURS", hours_retained=10**17) == TIMES[0]
    assert earliest(commits(3), policy="KEEP_LATEST_BY_HOURS", hours_retained=2) == TIMES[2]


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.REPLACE_COMMIT, Action.COMMIT])
def test_nothing_that_a_pending_write_began_from_is_given_up(action: Action) -> None:
    pending = Instant(f"{TIMES[1][:-1]}5", action, State.REQUESTED)
    kept = retention(commits(6, pending), CleanOptions(commits_retained=2), NOW)
    assert kept.earliest == Instant(TIMES[1], Action.COMMIT, State.COMPLETED)
    assert kept.held_by == pending


def test_versions_know_no_earliest_instant_and_drop_replaced_groups_at_once() -> None:
    kept = retention(commits(2), CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions_retained=2), NOW)
    assert kept.earliest is None
    assert kept.policy == KeepVersions(2)
    assert kept.policy.drops_replaced(TIMES[1])


def test_groups_replaced_before_the_earliest_instant_go_and_later_ones_stay() -> None:
    policy = KeepSince(TIMES[4], Order.by_request())
    assert policy.drops_replaced(TIMES[3])
    assert not policy.drops_replaced(TIMES[4])


def test_by_completion_the_earliest_instant_is_one_that_showed_when_the_oldest_pending_write_began() -> None:
    pending = Instant(f"{TIMES[4][:-1]}5", Action.COMMIT, State.REQUESTED)
    order = Order.by_completion({time: time for time in TIMES} | {TIMES[4]: TIMES[9], pending.requested_time: NEVER})
    timeline = replace(commits(6, pending), order=order)
    kept = retention(timeline, CleanOptions(commits_retained=2), NOW)
    assert (kept.earliest, kept.held_by) == (Instant(TIMES[3], Action.COMMIT, State.COMPLETED), pending)
    assert kept.policy == KeepSince(TIMES[3], order)


@given(st.sets(st.sampled_from(TIMES), min_size=1), st.sampled_from(TIMES))
def test_what_a_query_as_of_the_earliest_instant_or_later_reads_is_kept(slices: set[str], since: str) -> None:
    newest_first = sorted(slices, reverse=True)
    kept = KeepSince(since, Order.by_request()).keeps(newest_first)
    for as_of in [time for time in TIMES if time >= since]:
        read = next((time for time in newest_first if time <= as_of), None)
        assert read is None or read in kept
    assert newest_first[0] in kept


def test_a_slice_that_began_before_the_earliest_instant_and_shows_after_it_takes_the_place_of_none() -> None:
    moments = {time: time for time in TIMES} | {TIMES[2]: TIMES[6]}
    policy = KeepSince(TIMES[4], Order.by_completion(moments))
    assert policy.keeps([TIMES[2], TIMES[1], TIMES[0]]) == {TIMES[2], TIMES[1]}
    assert not policy.drops_replaced(TIMES[2])


@given(st.sets(st.sampled_from(TIMES), min_size=1), st.integers(1, 5))
def test_the_newest_versions_are_kept_and_no_others(slices: set[str], retained: int) -> None:
    newest_first = sorted(slices, reverse=True)
    assert KeepVersions(retained).keeps(newest_first) == set(newest_first[:retained])
