"""Which schedules are tried: first those without a preemption, then those with one, and so on; of the deepest as many as there is time for.

A preemption before a call of A, in favour of B, makes no difference to the one before A's next call if that first call and all that
is done until A goes on need no order among themselves: A's call may as well come first. So after each run the calls of A that do not
depend on what came between are skipped. The same holds for a crash or a pause before a call that changes nothing.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.explorer.footprint import Footprint
from tests.explorer.run import AnyCase, Outcome, Seen, run
from tests.explorer.turns import FAULTS, LOST, Event, Schedule, Step

cpu = time.process_time
MOST_EVENTS = 3


class Found(AssertionError):
    """A violation, with the schedule that leads to it."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        schedule = outcome.schedule
        steps = "\n".join(f"  {number:4} {step}" for number, step in enumerate(outcome.trace))
        super().__init__(
            f"{outcome.case}: {outcome.violation!r}\nreplay it with\n"
            f"  replay({str(outcome.case)!r}, {schedule.order!r}, {list(schedule.events)!r})\n{steps}"
        )


@dataclass
class Report:
    """What was explored of a case. `depths`: schedules by number of events; `complete`: all up to that many were tried."""

    case: AnyCase
    depths: dict[int, int] = field(default_factory=dict)
    looks: int = 0
    calls: int = 0
    seen: Seen = field(default_factory=Seen)
    found: Outcome | None = None
    complete: int = -1

    @property
    def schedules(self) -> int:
        return sum(self.depths.values())

    def __str__(self) -> str:
        by_depth = ", ".join(f"{count} with {depth}" for depth, count in sorted(self.depths.items()))
        return (
            f"{self.case}: {self.schedules} schedules ({by_depth} events; all with up to {self.complete}),"
            f" {self.looks} states looked at, {len(self.seen.shapes)} different ends, {self.calls} calls"
        )


@dataclass
class _Chain:
    """The places of one run at which one event may be added, in their order; what one leads to says which are next."""

    parent: Outcome
    places: list[int]
    event: str
    at: int = 0

    def following(self) -> Schedule | None:
        if self.at >= len(self.places):
            return None
        schedule = self.parent.schedule.then(Event(self.places[self.at], self.event))
        self.at += 1
        return schedule

    def learn(self, outcome: Outcome, place: int) -> None:
        """Skip the places before which the preemption would make no difference."""
        if self.event in FAULTS:
            return
        owner = self.parent.trace[place].actor
        self.at += _independent(outcome.trace, place, owner)


def _independent(trace: list[Step], place: int, owner: str) -> int:
    """How many calls of `owner`, who was preempted at `place`, need no order with what was done until it went on."""
    back = next((at for at in range(place, len(trace)) if trace[at].actor == owner), len(trace))
    between = Footprint.union(step.footprint for step in trace[place:back])
    count = 0
    for step in trace[back:]:
        if step.actor != owner or step.footprint.needs_order(between):
            break
        count += 1
    return count


def explore(case: AnyCase, *, schedules: int, seconds: float = 1e9, seed: str = "", events: int = MOST_EVENTS) -> Report:
    """Try up to so many schedules, for up to so many seconds of processor time; stops at the first violation (`found`)."""
    report, chance, began = Report(case), random.Random(f"{seed} {case}"), cpu()
    waiting: list[list[_Chain]] = [[] for _ in range(events + 1)]
    first = [Schedule(order) for order in itertools.permutations(case.actors)]
    if len(first) > schedules:
        first = chance.sample(first, schedules)
    for schedule in first:
        outcome = _tried(case, schedule, report)
        if report.found is not None:
            return report
        _extend(waiting, outcome, events)
    depth = 1
    while depth <= events:
        report.complete = depth - 1
        chains = waiting[depth]
        while chains:
            if report.schedules >= schedules or cpu() - began >= seconds:
                return report
            number = chance.randrange(len(chains))
            chain = chains[number]
            next_schedule = chain.following()
            if next_schedule is None:
                chains[number] = chains[-1]
                chains.pop()
                continue
            outcome = _tried(case, next_schedule, report)
            if report.found is not None:
                return report
            chain.learn(outcome, next_schedule.events[-1].at)
            _extend(waiting, outcome, events)
        depth += 1
    report.complete = events
    return report


def _tried(case: AnyCase, schedule: Schedule, report: Report) -> Outcome:
    outcome = run(case, schedule, report.seen)
    report.depths[schedule.depth] = report.depths.get(schedule.depth, 0) + 1
    report.looks += outcome.looks
    report.calls += len(outcome.trace)
    if outcome.violation is not None:
        report.found = outcome
    return outcome


def _extend(waiting: list[list[_Chain]], outcome: Outcome, events: int) -> None:
    depth = outcome.schedule.depth + 1
    if depth <= events:
        waiting[depth].extend(_chains(outcome))


def _chains(outcome: Outcome) -> Iterator[_Chain]:
    since = outcome.schedule.events[-1].at + 1 if outcome.schedule.events else 0
    trace = outcome.trace
    for owner, places in _segments(trace, since):
        others = {name for place in places for name in trace[place].could}
        for other in sorted(others):
            yield _Chain(outcome, [place for place in places if other in trace[place].could], other)
        yield from _faults(outcome, owner, places)


def _segments(trace: list[Step], since: int) -> Iterator[tuple[str, list[int]]]:
    """Places of `trace` in runs of one actor. The last call of the actor before is where a switch is free, and no preemption."""
    for owner, group in itertools.groupby(range(since, len(trace)), lambda place: trace[place].actor):
        yield owner, list(group)


def _faults(outcome: Outcome, owner: str, places: list[int]) -> Iterator[_Chain]:
    scenario, trace = outcome.case.scenario, outcome.trace
    if owner not in scenario.faulty or any(event.what in FAULTS for event in outcome.schedule.events):
        return
    changing = [place for place in places if trace[place].mutates]
    for fault in scenario.faults:
        chosen = [place for place in changing if fault != LOST or trace[place].verb != "lock"]
        yield _Chain(outcome, chosen, fault)


def replay(name: str, order: tuple[str, ...], events: list[Event], cases: Any = None) -> Outcome:
    """Carry out one schedule of the case of that name, as a violation prints it. Raises `Found` where it violates something still."""
    from tests.explorer.cases import CASES

    case = next(case for case in cases or CASES if str(case) == name)
    outcome = run(case, Schedule(order, tuple(events)))
    if outcome.violation is not None:
        raise Found(outcome)
    return outcome
