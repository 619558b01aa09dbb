"""The zone of a table's instants, told by the modification times of the files that requested them."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_engine.compat import UTC
from lakehouse_engine.format.v6.layout_v1 import LayoutV1
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.writers_zone import WritersZone, writers_zone

NOON = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LAYOUT = LayoutV1()


def request(table: Path, moment: datetime, ahead: timedelta, *, late: float = 0.02, action: Action = Action.COMMIT) -> str:
    """A completed instant of a writer so far ahead of UTC, whose file was made `late` seconds after its digits."""
    time = format_instant_time(moment + ahead)
    made = (moment + timedelta(seconds=late)).timestamp()
    done = {Action.COMPACTION: Action.COMMIT}.get(action, action)
    for instant in (Instant(time, action, State.REQUESTED), Instant(time, done, State.COMPLETED)):
        path = table / ".hoodie" / LAYOUT.file_name(instant)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (made + 3600 * (instant.state is State.COMPLETED), made + 3600 * (instant.state is State.COMPLETED)))
    return time


def told(table: Path) -> WritersZone | None:
    storage = LocalStorage(str(table))
    return writers_zone(storage, LAYOUT, ActiveTimeline(storage, LAYOUT).load())


@pytest.mark.parametrize("hours", [0, 9, -5, 5.75, 14, -12])
def test_zone_of_writers_is_the_distance_of_their_digits_from_utc(hours: float, tmp_path: Path) -> None:
    for minutes in (0, 7, 41):
        newest = request(tmp_path, NOON + timedelta(minutes=minutes), timedelta(hours=hours))
    found = told(tmp_path)
    assert found is not None
    assert (found.instant, found.offset) == (newest, timedelta(hours=hours))
    assert abs(found.moment - NOON - timedelta(minutes=41)) < timedelta(seconds=1)


def test_compactions_tell_by_the_file_of_their_plan(tmp_path: Path) -> None:
    for minutes in (0, 7):
        request(tmp_path, NOON + timedelta(minutes=minutes), timedelta(hours=9), action=Action.COMPACTION)
    found = told(tmp_path)
    assert found is not None
    assert found.offset == timedelta(hours=9)


def test_one_instant_and_two_that_differ_tell_nothing(tmp_path: Path) -> None:
    request(tmp_path, NOON, timedelta(hours=9))
    assert told(tmp_path) is None
    request(tmp_path, NOON + timedelta(hours=10), timedelta())
    assert told(tmp_path) is None


def test_copy_with_modification_times_of_its_own_tells_nothing(tmp_path: Path) -> None:
    for minutes in (0, 7, 41):
        request(tmp_path, NOON + timedelta(minutes=minutes), timedelta(), late=86_400 * 3)
    assert told(tmp_path) is None
    for minutes in (100, 107, 141):
        request(tmp_path, NOON + timedelta(minutes=minutes), timedelta(), late=4_000 - 60 * minutes)
    assert told(tmp_path) is None


def test_instants_of_old_tables_and_no_dates_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    for name in ("99999999999999999.commit", "99999999999999999.commit.requested", "20260501120000.commit"):
        (tmp_path / ".hoodie" / name).touch()
    assert told(tmp_path) is None


def test_instants_that_count_on_from_the_newest_tell_nothing_of_a_clock(tmp_path: Path) -> None:
    """When summer time ends, clocks are behind the newest instant for an hour. Made at the right moment, what counts on from it looks like
    zones between the two; who took one for the writers' stayed in it.
    """
    newest = NOON + timedelta(minutes=50)
    for moment in (NOON, newest):
        summer = request(tmp_path, moment, timedelta(hours=2))
    for number in range(1, 12):
        moment = NOON + timedelta(minutes=65, seconds=number / 10)
        digits = newest + timedelta(hours=2, milliseconds=number)
        request(tmp_path, moment, digits - moment)
    found = told(tmp_path)
    assert found is not None
    assert (found.instant, found.offset) == (summer, timedelta(hours=2))
    for minutes in (111, 112):
        request(tmp_path, NOON + timedelta(minutes=minutes), timedelta(hours=1))
    found = told(tmp_path)
    assert found is not None
    assert found.offset == timedelta(hours=1)
