"""What a table must hold, told from what was published and acknowledged alone; and what is looked at after each publication."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.crash.checker import look, saved_rows
from tests.crash.scenarios import COLUMNS
from tests.crash.timeline import Violation, expect, record_of
from tests.explorer.disk import Disk
from tests.support.versions import timeline_folder

Rows = Mapping[str, tuple[Any, ...]]
Effect = Callable[[Rows], Rows]
"""What a write makes of the rows of a table."""

_DONE = re.compile(r"\.hoodie/(?:timeline/)?(\d{17})(?:_(\d{17}))?\.(commit|deltacommit|replacecommit|savepoint|clean|restore|rollback)")
_PLAN = re.compile(r"\.hoodie/(?:timeline/)?(\d{17})\.(restore|rollback)\.requested")
LOCK = ".hoodie/lock"
"""Hudi's, which is no part of the table."""
TIMELINE = ".hoodie/timeline"
"""Where versions 8 and 9 have their instants."""
_WRITES = ("commit", "deltacommit", "replacecommit")


@dataclass
class Write:
    """What an actor is about to commit. `instants`: where it was published; `since`: the number of the state that there was before."""

    actor: str
    name: str
    effect: Effect
    since: int = 0
    instants: list[str] = field(default_factory=list)


@dataclass
class Oracle:
    """`states` are the rows after each thing that was published, in that order; `at` those as of each instant.

    `foreign` are actors whose instants may be published after later ones. `looks` counts how often the table was looked at,
    `beginning` are the instants that there were first. `moments` says of the instants of versions 8 and 9 when they show.
    """

    disk: Disk
    states: list[Rows]
    at: dict[str, Rows]
    foreign: frozenset[str] = frozenset()
    restores: list[str] = field(default_factory=list)
    looks: int = 0
    beginning: frozenset[str] = frozenset()
    moments: dict[str, str] = field(default_factory=dict)
    _now: dict[str, Write] = field(default_factory=dict)
    _going: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.beginning = frozenset(self.at)
        self.by_completion = timeline_folder(self.disk) == TIMELINE

    @property
    def rows(self) -> Rows:
        return self.states[-1]

    def moment(self, time: str) -> str:
        """When an instant shows: in version 6 at its own time."""
        return self.moments.get(time, time)

    def settled(self) -> Rows:
        """The rows once a rollback that was planned, and whose process died, is finished by whoever comes next."""
        for time in sorted(self._going & set(self.at)):
            self._taken_back(time, looking=False)
        return self.rows

    # what actors do

    def begins(self, actor: str, name: str, effect: Effect) -> Write:
        self._now[actor] = write = Write(actor, name, effect, len(self.states) - 1)
        return write

    def succeeded(self, write: Write, instant: str | None) -> None:
        """I1: what is acknowledged was published, once, at the instant that is told."""
        self._now.pop(write.actor, None)
        if instant is None:
            expect(not write.instants, f"{write.name} says that nothing changed, and published {write.instants}")
            # Who looks without the lock may have looked at any moment of the call.
            states = self.states[write.since :] if self.by_completion else [self.rows]
            expect(any(write.effect(rows) == rows for rows in states), f"{write.name} says that nothing changed, and it had something to")
        else:
            expect(write.instants == [instant], f"{write.name} is acknowledged at {instant}, and was published at {write.instants}")

    def failed(self, write: Write, error: BaseException) -> None:
        """I2: what failed was not published."""
        self._now.pop(write.actor, None)
        expect(not write.instants, f"{write.name} failed and was published at {write.instants}: {error!r}")

    # what happens on the disk

    def watch(self, actor: str, verb: str, path: str) -> None:
        if not path.startswith(".hoodie/"):
            return
        done, plan = _DONE.fullmatch(path), _PLAN.fullmatch(path)
        if done is not None and verb == "create":
            if done[3] in _WRITES:
                self._published(actor, done[1], self._shown(done[1], done[2]))
            self.check_now()
        elif done is not None and verb == "delete" and done[3] in _WRITES and done[1] in self._going:
            self._taken_back(done[1])
        elif plan is not None and verb == "create":
            self._planned(plan[2], record_of(path, self.disk.read(path)))

    def _shown(self, time: str, completed_at: str | None) -> str:
        """When an instant that was completed now shows: a compaction, when it was planned."""
        planned = any(self.disk.names(f"{TIMELINE}/{time}.{action}.requested") for action in ("compaction", "logcompaction"))
        return completed_at if completed_at and not planned else time

    def _published(self, actor: str, time: str, moment: str) -> None:
        write, self.moments[time] = self._now.get(actor), moment
        before = [other for other in self.at if self.moment(other) < moment]
        if write is None:
            # A service: the rows are as they were, now and as of its instant.
            self.at[time] = self.at[max(before, key=self.moment)]
            return
        newest = max(map(self.moment, self.at), default="")
        foreign = actor in self.foreign and moment == time
        expect(foreign or moment > newest, f"{time} of {actor} is published at {moment}, after {newest}")
        write.instants.append(time)
        # As of instants that were published before, and are later, the table is another one from now on: readers as of them are to be
        # refused while an older write is pending.
        later = {other: dict(write.effect(rows)) for other, rows in self.at.items() if self.moment(other) > moment}
        self.at |= {time: dict(write.effect(self.at[max(before, key=self.moment)] if before else {})), **later}
        self.states.append(dict(write.effect(self.rows)))

    def _planned(self, action: str, plan: Mapping[str, Any]) -> None:
        if action == "rollback":
            target = plan["instantToRollback"]["commitTime"]
            if target in self.at:
                self._going.add(target)
            return
        target = plan["savepointToRestoreTimestamp"]
        self.at = {time: rows for time, rows in self.at.items() if self.moment(time) <= self.moment(target)}
        self.restores.append(target)
        self.states.append(self.at[target])
        self.check_now()

    def _taken_back(self, time: str, *, looking: bool = True) -> None:
        self._going.discard(time)
        del self.at[time]
        self.states.append(self.at[max(self.at, key=self.moment)] if self.at else {})
        if looking:
            self.check_now()

    # what the table holds

    def check_now(self) -> None:
        """I1, I2, I7: readers that share nothing with the engine find every file that commits name, and the rows that they say."""
        self.looks += 1
        found = look(self.disk.without(LOCK), COLUMNS)
        expect(found.rows == dict(self.rows), f"rows are {_difference(found.rows, self.rows)}")
        for time in found.timeline.savepoints:
            saved = saved_rows(self.disk, found, time, COLUMNS)
            expect(saved == self.at[time], f"the savepoint {time} holds {_difference(saved, self.at[time])}")

    def check_seen(self, rows: Rows, since: int, what: str) -> None:
        """I3: a reader that began after `since` states has rows of one that was there when it began, or came after."""
        states = [dict(state) for state in self.states[since:]]
        expect(rows in states, f"{what} read {dict(rows)}, of {states}")

    def check_changes(self, rows: Rows, begin: str | None, before: Rows, since: int) -> None:
        """I4: an incremental read has just what differs from `before`, its last one, in a state of now."""
        states = [dict(state) for state in self.states[since:]]
        for state in states:
            if rows == {key: row for key, row in state.items() if before.get(key) != row}:
                return
        raise Violation(f"after {begin} a reader finds {dict(rows)}; it had {dict(before)}, and there are {states}")


def _difference(found: Rows, expected: Rows) -> str:
    keys = sorted(found.keys() | expected.keys())
    return ", ".join(f"{key}: {found.get(key)}, not {expected.get(key)}" for key in keys if found.get(key) != expected.get(key))
