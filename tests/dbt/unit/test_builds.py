"""Whether anything of a build was committed: some write of the table comes after the one that was its newest before."""

from __future__ import annotations

import pytest

from dbt.adapters.lakehouse.bridge.builds import _is_begun, _newest
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import Order
from lakehouse_engine.timeline.timeline import Timeline

FIRST, SECOND = "20260101000000001", "20260101000000002"
WRITES = Timeline(tuple(Instant(time, Action.COMMIT, State.COMPLETED) for time in (FIRST, SECOND)))


@pytest.mark.parametrize(
    ("known", "writes", "is_begun"),
    [
        ({}, WRITES, False),
        ({"since": ""}, Timeline(), True),  # of a new table
        ({"since": FIRST}, WRITES, True),
        ({"since": SECOND}, WRITES, False),
        ({"since": SECOND}, Timeline(), False),  # what was there is taken back
        ({"since": SECOND}, Timeline(WRITES.instants, order=Order.by_completion({FIRST: f"{SECOND}9", SECOND: f"{SECOND}1"})), True),
    ],
)
def test_a_build_is_begun_with_a_write_that_comes_after_those_of_before(known: dict[str, object], writes: Timeline, is_begun: bool) -> None:
    assert _is_begun(known, writes) is is_begun


def test_the_newest_write_is_the_last_one() -> None:
    assert (_newest(WRITES), _newest(Timeline())) == (SECOND, "")
