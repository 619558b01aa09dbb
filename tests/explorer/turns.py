"""Actors in threads of which one runs at a time: before each of its storage calls it is decided who goes on.

A schedule is short: the order in which actors go on by themselves, and `Event`s, each at a number of executed calls. Where nothing is said
the actor that ran goes on, and when it ends or waits, the next of the order that can.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.storage.faults import SimulatedCrash
from tests.explorer.footprint import Footprint

CRASH, PAUSE, LOST = "crash", "pause", "lose the answer"
FAULTS = (CRASH, PAUSE, LOST)
MOST_CALLS = 6_000
"""A run that makes more calls has an actor that starves."""
_CALL_SECONDS, _PAUSE_SECONDS = 0.001, 600.0
_SHORT = 0.026
"""Seconds up to which a sleep is no wait for somebody else."""


@dataclass(frozen=True, slots=True)
class Event:
    """Before the call number `at`: `what` is the name of the actor that makes it, or the fault that happens to whoever would."""

    at: int
    what: str

    def __repr__(self) -> str:
        return f"Event({self.at}, {self.what!r})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`order`: names of the actors."""

    order: tuple[str, ...]
    events: tuple[Event, ...] = ()

    def then(self, event: Event) -> Schedule:
        return Schedule(self.order, (*self.events, event))

    @property
    def depth(self) -> int:
        return len(self.events)


@dataclass(slots=True)
class Step:
    """A call that was made. `could` are the actors that could have made one instead."""

    actor: str
    verb: str
    path: str
    could: tuple[str, ...]
    footprint: Footprint = field(default_factory=Footprint)
    mutates: bool = False

    def __str__(self) -> str:
        return f"{self.actor}: {self.verb} {self.path}"


@dataclass(slots=True, eq=False)
class Actor:
    """`gate` is open while it runs. `unfit` says that it cannot go on now (it waits for a lock, or sleeps)."""

    name: str
    act: Callable[[], None]
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: bool = False
    dead: bool = False
    paused: bool = False
    lost: bool = False
    asleep_since: int | None = None
    waits_for: TurnLock | None = None
    timed_out: bool = False
    error: BaseException | None = None


class Here(threading.local):
    """What this thread is."""

    actor: Actor | None = None
    turns: Turns | None = None


HERE = Here()


@dataclass(slots=True)
class Turns:
    """One run of some actors. `now` is the time of this world in seconds since the epoch; `changes` counts what a sleeper may wait for."""

    schedule: Schedule
    now: float
    actors: dict[str, Actor] = field(default_factory=dict)
    trace: list[Step] = field(default_factory=list)
    violation: BaseException | None = None
    changes: int = 0
    faults: int = 0
    starved: bool = False
    mail: dict[str, Any] = field(default_factory=dict)
    """What one actor hands to another."""
    _events: dict[int, list[str]] = field(default_factory=dict)
    _current: Actor | None = None
    _over: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def run(self, acts: Mapping[str, Callable[[], None]]) -> None:
        """All actors to their end; what one of them raised is in its `error`."""
        for event in self.schedule.events:
            self._events.setdefault(event.at, []).append(event.what)
        self.actors = {name: Actor(name, acts[name]) for name in self.schedule.order}
        # What a run leaves behind is not collected in its midst: files would be closed by whichever thread that happens in.
        gc.disable()
        try:
            self._run()
        finally:
            gc.enable()

    def _run(self) -> None:
        for actor in self.actors.values():
            threading.Thread(target=self._live, args=(actor,), name=actor.name, daemon=True).start()
        first = self._pick()
        assert first is not None
        self._let(first)
        assert self._over.acquire(timeout=300), "the actors hang"

    def step(self, verb: str, path: str, footprint: Footprint, *, mutates: bool = False) -> Step:
        """To be called by the actor before it does something; returns when it is its turn to."""
        actor = HERE.actor
        assert actor is not None
        if actor.dead:
            raise SimulatedCrash(f"{actor.name} died before")
        chosen = self._pick()
        if chosen is not actor:
            assert chosen is not None
            self._let(chosen)
            actor.gate.acquire()
        if actor.dead:
            raise SimulatedCrash(f"{actor.name} died before {verb} {path}")
        self.now += _CALL_SECONDS
        could = tuple(other.name for other in self.actors.values() if other is not actor and self._is_fit(other))
        made = Step(actor.name, verb, path, could, footprint, mutates)
        self.trace.append(made)
        self.changes += mutates
        if len(self.trace) >= MOST_CALLS:
            self.starved = True
            self.stop(AssertionError(f"no end after {MOST_CALLS} calls"))
        return made

    def sleep(self, seconds: float) -> None:
        """A pause of the actor: others go on, and it does when one of them did something, or none can."""
        actor = HERE.actor
        assert actor is not None
        actor.asleep_since = None if seconds < _SHORT else self.changes
        self.step("sleep", f"{seconds:g} s", Footprint())
        actor.asleep_since = None
        self.now += seconds

    def stop(self, why: BaseException) -> None:
        """End this run: nobody makes another call."""
        if self.violation is None:
            self.violation = why
        for actor in self.actors.values():
            actor.dead = True
        raise SimulatedCrash("the run is over")

    def _live(self, actor: Actor) -> None:
        HERE.actor, HERE.turns = actor, self
        actor.gate.acquire()
        try:
            if not actor.dead:
                actor.act()
        except SimulatedCrash:
            pass
        except BaseException as error:  # noqa: BLE001 - told by the run
            actor.error = error
        actor.done = True
        self.changes += 1
        following = self._pick()
        if following is None:
            self._over.release()
        else:
            self._let(following)

    def _let(self, actor: Actor) -> None:
        self._current = actor
        actor.gate.release()

    def _pick(self) -> Actor | None:
        """Who makes the next call; None when all are done. Faults that are due happen here."""
        while True:
            actor = self._candidate()
            due = self._events.get(len(self.trace))
            if actor is None or not due:
                return actor
            what = due.pop(0)
            if what == CRASH:
                actor.dead = True
                self.faults += 1
                return actor
            if what == LOST:
                actor.lost = True
                self.faults += 1
                continue
            if what == PAUSE:
                actor.paused = True
                self.faults += 1
                continue
            other = self.actors[what]
            if self._is_fit(other):
                self._current = other

    def _candidate(self) -> Actor | None:
        current = self._current
        if current is not None and self._is_fit(current):
            return current
        alive = [actor for actor in self.actors.values() if not actor.done]
        fit = [actor for actor in alive if self._is_fit(actor)]
        chosen = fit[0] if fit else (self._woken(alive) if alive else None)
        self._current = chosen
        return chosen

    def _woken(self, alive: list[Actor]) -> Actor:
        """Nobody can go on by himself: time passes until somebody does."""
        for actor in alive:
            if actor.asleep_since is not None and not actor.paused:
                actor.asleep_since = None
                return actor
        for actor in alive:
            if actor.paused:
                actor.paused = False
                self.now += _PAUSE_SECONDS
                return actor if self._is_fit(actor) else self._woken(alive)
        waiting = next(actor for actor in alive if actor.waits_for is not None)
        waiting.timed_out = True
        return waiting

    def _is_fit(self, actor: Actor) -> bool:
        if actor.dead:
            return not actor.done
        if actor.done or actor.paused:
            return False
        if actor.asleep_since is not None and actor.asleep_since == self.changes:
            return False
        return actor.waits_for is None or actor.timed_out or actor.waits_for.owner is None


class TurnLock:
    """In the place of a lock of threads: whoever wants it cannot go on until it is free. Outside of a run it is anybody's."""

    def __init__(self) -> None:
        self.owner: Actor | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        actor, turns = HERE.actor, HERE.turns
        if actor is None or turns is None:
            assert self.owner is None, "an actor left the lock locked"
            return True
        if self.owner is actor:
            self._depth += 1
            return True
        key = frozenset({("lock", id(self))})
        actor.waits_for = self if blocking and timeout != 0 else None
        try:
            turns.step("lock", "", Footprint(writes=key), mutates=True)
        finally:
            actor.waits_for = None
        if self.owner is not None:
            actor.timed_out = False
            return False
        self.owner, self._depth = actor, 1
        return True

    def release(self) -> None:
        actor, turns = HERE.actor, HERE.turns
        if actor is None or turns is None:
            return
        assert self.owner is actor, "the lock is another's"
        self._depth -= 1
        if self._depth == 0:
            self.owner = None
            turns.changes += 1
            last = next((step for step in reversed(turns.trace) if step.actor == actor.name), None)
            if last is not None:
                last.footprint = last.footprint.with_writes(("lock", id(self)))
