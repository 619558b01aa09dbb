from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import TimelineError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.timeline.clock import InstantClock, LastInstant
from lakehouse_engine.timeline.timeline import Timeline

NOON = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
EMPTY = Timeline()


def clock(moment: datetime = NOON, *, accept_future: bool = False, timezone: str = "UTC") -> InstantClock:
    return InstantClock(timezone, lambda: moment, LastInstant(), accept_future)


def with_last(time: str) -> Timeline:
    return Timeline((Instant(time, Action.CLEAN, State.COMPLETED),))


def test_time_is_the_wall_clock_in_milliseconds() -> None:
    assert clock().next(EMPTY) == "20260501120000123"


def test_times_strictly_increase_under_eight_threads() -> None:
    stuck = clock()
    with ThreadPoolExecutor(8) as pool:
        per_thread = list(pool.map(lambda _: [stuck.next(EMPTY) for _ in range(250)], range(8)))
    assert all(times == sorted(times) for times in per_thread)
    every = [time for times in per_thread for time in times]
    assert len(set(every)) == len(every) == 2000


def test_clocks_of_one_process_share_what_they_handed_out() -> None:
    times = [InstantClock().next(EMPTY) for _ in range(100)]
    assert times == sorted(set(times))


def test_clock_behind_the_timeline_goes_on_from_it_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert clock().next(with_last("20260501180000999")) == "20260501180001000"
    assert "ahead of this machine's clock" in caplog.text


def test_clock_set_back_within_a_process_never_repeats_a_time() -> None:
    moments = iter([NOON, NOON - timedelta(hours=1), NOON + timedelta(seconds=1)])
    stepping = InstantClock("UTC", lambda: next(moments), LastInstant())
    assert [stepping.next(EMPTY) for _ in range(3)] == ["20260501120000123", "20260501120000124", "20260501120001123"]


def test_a_table_ahead_of_the_clock_does_not_take_other_tables_with_it() -> None:
    """Nor do the digits of another zone: tables of Hudi have those of the machine's zone by default."""
    shared = LastInstant()
    utc, tokyo = (InstantClock(zone, lambda: NOON, shared) for zone in ("UTC", "LOCAL"))
    ahead = with_last("20260501180000999")
    assert [utc.next(ahead), utc.next(ahead), utc.next(EMPTY)] == ["20260501180001000", "20260501180001001", "20260501120000123"]
    local = tokyo.next(EMPTY)
    assert tokyo.next(EMPTY) > local
    assert utc.next(EMPTY) == "20260501120000124"
    assert utc.next(with_last("20260501120000124")) == "20260501120000125"


def test_what_is_remembered_of_tables_ahead_does_not_grow_for_ever() -> None:
    shared = LastInstant()
    for second in range(1000):
        InstantClock("UTC", lambda: NOON, shared).next(with_last(f"20260501{130000 + second // 60 * 100 + second % 60}000"))
    assert len(shared.by_timeline) < 100


def test_timeline_more_than_a_day_ahead_is_refused_unless_accepted() -> None:
    future = with_last("20360501120000000")
    with pytest.raises(TimelineError, match="ahead of this machine's clock"):
        clock().next(future)
    assert clock(accept_future=True).next(future) == "20360501120000001"


def test_refused_time_does_not_move_the_clock() -> None:
    refusing = clock()
    with pytest.raises(TimelineError):
        refusing.next(with_last("20360501120000000"))
    assert refusing.next(EMPTY) == "20260501120000123"


def test_last_instant_with_seconds_only_counts_to_the_end_of_its_second() -> None:
    assert clock().next(with_last("20260501130000")) == "20260501130001000"


def test_special_instants_of_the_past_do_not_disturb() -> None:
    assert clock().next(with_last("00000000000002")) == "20260501120000123"


def test_instant_that_is_no_date_is_a_typed_error() -> None:
    with pytest.raises(TimelineError, match="no point in time"):
        clock().next(with_last("99999999999999999"))


def test_local_zone_gives_local_digits() -> None:
    local = NOON.astimezone()
    assert clock(timezone="LOCAL").next(EMPTY) == f"{local:%Y%m%d%H%M%S}123"
