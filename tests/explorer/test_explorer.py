"""The real engine, two and three actors at once, in every order of their storage calls up to a number of preemptions.

LAKEHOUSE_DEPTH=full visits hundreds of schedules of a case, in place of the few that the commit's hash draws.
"""

from __future__ import annotations

import os

import pytest

from lakehouse_engine.storage.faults import SimulatedCrash
from tests.explorer.cases import CASES
from tests.explorer.explore import Found, explore, replay
from tests.explorer.footprint import of_change, of_file, of_listing, of_walk
from tests.explorer.run import Case, run
from tests.explorer.turns import Event, Schedule
from tests.support.commit import commit_here
from tests.support.depth import IS_FULL

FEW, MANY = 8, int(os.environ.get("LAKEHOUSE_EXPLORER_SCHEDULES", "400"))
"""Schedules of a case."""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_whatever_is_acknowledged_is_there_in_every_order_of_calls(case: Case) -> None:
    report = explore(case, schedules=MANY if IS_FULL else FEW, seed="full" if IS_FULL else commit_here())
    print(report)
    if report.found is not None:
        raise Found(report.found)


def _case(name: str) -> Case:
    return next(case for case in CASES if str(case) == name)


def test_a_schedule_makes_the_same_calls_again() -> None:
    case = _case("two counters, cow")
    schedule = Schedule(case.actors, (Event(7, "two"), Event(40, "one")))
    first, again = run(case, schedule), run(case, schedule)
    assert first.violation is None
    assert [str(step) for step in first.trace] == [str(step) for step in again.trace]
    assert {step.actor for step in first.trace[7:40]} == {"two"}


def test_what_died_makes_no_more_calls() -> None:
    outcome = run(_case("dying writers, cow"), Schedule(("one", "two", "reads"), (Event(30, "crash"),)))
    assert outcome.violation is None
    assert {step.actor for step in outcome.trace[30:]} == {"two", "reads"}


def test_who_is_paused_goes_on_last_and_much_later() -> None:
    outcome = run(_case("paused readers and writers, cow"), Schedule(("one", "two", "reads"), (Event(3, "pause"),)))
    assert outcome.violation is None
    assert outcome.trace[3].actor != "one"
    assert outcome.trace[-1].actor == "one"


def test_a_lost_answer_is_an_error_of_a_change_that_was_made() -> None:
    case = _case("dying writers, cow")
    plain = run(case, Schedule(case.actors))
    commit = next(number for number, step in enumerate(plain.trace) if step.path.endswith(".commit") and step.verb == "create")
    outcome = run(case, Schedule(case.actors, (Event(commit, "lose the answer"),)))
    assert outcome.violation is None
    assert outcome.told == []  # the engine reads back what is there


def test_replay_finds_a_case_by_its_name() -> None:
    outcome = replay("two counters, cow", ("two", "one"), [Event(5, "one")])
    assert not isinstance(outcome.violation, SimulatedCrash)
    assert len(outcome.trace) > 100


@pytest.mark.parametrize("call", [6, 7])
def test_a_plan_that_a_restore_takes_back_while_it_is_looked_at_is_not_run(call: int) -> None:
    outcome = replay("clustering and a restore, cow", ("runs", "restores"), [Event(call, "restores")])
    assert outcome.trace[call].actor == "restores"


@pytest.mark.parametrize(
    ("one", "other", "matters"),
    [
        (of_file("a/b"), of_file("a/b"), False),
        (of_file("a/b"), of_change(["a/b"]), True),
        (of_listing("a"), of_change(["a/b"]), True),
        (of_listing("a"), of_change(["a/b/c"]), False),
        (of_listing("a"), of_change(["a/b/c"], ["a/b"]), True),
        (of_walk("a"), of_change(["a/b/c"]), True),
        (of_file("a/b"), of_change(["a/b/c"], ["a/b"]), True),
        (of_change(["a/b"]), of_change(["a/c"]), False),
        (of_change(["a/b"]), of_change(["a/b"]), True),
    ],
)
def test_calls_need_an_order_where_one_changes_what_the_other_sees(one: object, other: object, matters: bool) -> None:
    assert one.needs_order(other) is matters  # type: ignore[attr-defined]
    assert other.needs_order(one) is matters  # type: ignore[attr-defined]
