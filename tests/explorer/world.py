"""Time, chance and threads of a run, in the place of the machine's: the same schedule makes the same calls, and nobody waits.

Each actor is a process of its own, as far as the engine can tell: with its own memory of instants, and a clock that may be wrong.
"""

from __future__ import annotations

import gc
import random
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest

import lakehouse_engine.commit.expected as expected
import lakehouse_engine.commit.heartbeat as heartbeat
import lakehouse_engine.engine as engine
import lakehouse_engine.timeline.clock as clock
import lakehouse_engine.timeline.lock as lock
import lakehouse_engine.timeline.processes as processes
import lakehouse_engine.write.operation as operation
from lakehouse_engine.compat import UTC
from lakehouse_engine.storage.base import Storage
from tests.explorer import hudi
from tests.explorer.turns import HERE, TurnLock, Turns

BEGINNING = 1_767_225_600.0  # 2026-01-01
_REAL_LOCK = lock._ProcessLock


@dataclass
class World:
    """The time outside of runs, and what chance gave so far. `skews`: seconds by which clocks of actors are ahead."""

    now: float = BEGINNING
    skews: Mapping[str, float] = field(default_factory=dict)
    machines: bool = False
    turns: Turns | None = None
    _chances: dict[str, random.Random] = field(default_factory=dict)
    _remembered: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def who(self) -> str:
        return HERE.actor.name if HERE.actor is not None else ""

    def time(self) -> float:
        if self.turns is not None:
            return self.turns.now
        self.now += 0.001
        return self.now

    def chance(self) -> random.Random:
        return self._chances.setdefault(self.who, random.Random(self.who))

    def remembered(self, what: str) -> dict[str, str]:
        return self._remembered.setdefault(f"{self.who} {what}", {})


_WORLD: list[World] = []


def _world() -> World | None:
    """The world that this thread is in: the actors', and the thread that made it."""
    return _WORLD[-1] if _WORLD and (HERE.actor is not None or threading.current_thread() is threading.main_thread()) else None


@contextmanager
def in_world(world: World) -> Iterator[World]:
    """This thread and all actors live in `world`."""
    _WORLD.append(world)
    try:
        yield world
    finally:
        _WORLD.pop()


class _Moments(datetime):
    """`datetime` whose now is the actor's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        world = _world()
        if world is None:
            return datetime.now(tz)
        return datetime.fromtimestamp(world.time() + world.skews.get(world.who, 0.0), tz or UTC)


class _PerActor(dict[str, str]):
    """What the clock of a process remembers."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def _own(self) -> dict[str, str]:
        world = _world()
        return self if world is None else world.remembered(self._what)

    def get(self, key: str, default: Any = None) -> Any:
        own = self._own()
        return dict.get(own, key, default)

    def __setitem__(self, key: str, value: str) -> None:
        dict.__setitem__(self._own(), key, value)

    def popitem(self, last: bool = True) -> tuple[str, str]:
        return dict.popitem(self._own())

    def __len__(self) -> int:
        return dict.__len__(self._own())


def _locked_properties() -> list[Any]:
    """Up to Python 3.11 a cached property is computed under a lock that all instances share: an actor that waits for its turn in one would
    keep all others out of it.
    """
    found = [one for one in gc.get_objects() if isinstance(one, cached_property) and hasattr(one, "lock")]
    return [one for one in found if one.func.__module__.startswith("lakehouse_engine")]


class _LockFile:
    """The file that a lock of a plan or of a write leaves on a local disk. Which actor has the lock `TurnLock` knows."""

    def __init__(self, storage: Storage, file: str) -> None:
        self._storage, self._file = storage, file

    def acquire(self, deadline: float, on_wait: Callable[[], None]) -> None:
        if self._storage.head(self._file) is None:
            self._storage.create(self._file, b"")

    def release(self) -> None:
        """The file stays."""

    def confirm(self) -> bool:
        return True

    def keep(self) -> None:
        """It does not expire."""

    def forget(self) -> None:
        """No actor forks."""

    def holder(self) -> None:
        """The file does not say."""


class _NoThread:
    """A heartbeat that is never written anew: who is paused for long has one that is expired."""

    def __init__(self, **arguments: Any) -> None:
        pass

    def start(self) -> None:
        pass

    def join(self) -> None:
        pass


@contextmanager
def installed() -> Iterator[None]:
    """For as long as runs are made: threads of a world get its time, locks and chance, all others the machine's."""
    patch = pytest.MonkeyPatch()
    real_time, real_monotonic, real_sleep, real_ns = time.time, time.monotonic, time.sleep, time.time_ns
    real_uuid, real_below, real_uniform = uuid.uuid4, secrets.randbelow, random.uniform
    real_machine, real_run, real_shared = processes._machine, engine.LocalRunner.run, lock._shared

    def now() -> float:
        world = _world()
        return real_time() if world is None else world.time()

    def monotonic() -> float:
        world = _world()
        return real_monotonic() if world is None else world.time()

    def nanoseconds() -> int:
        world = _world()
        return real_ns() if world is None else int(world.time() * 1e9)

    def sleep(seconds: float) -> None:
        world = _world()
        if world is None:
            real_sleep(seconds)
        elif HERE.turns is not None:
            if seconds > 0:
                HERE.turns.sleep(seconds)
        else:
            world.now += seconds

    def unique() -> uuid.UUID:
        world = _world()
        return real_uuid() if world is None else uuid.UUID(int=world.chance().getrandbits(128), version=4)

    def below(limit: int) -> int:
        world = _world()
        return real_below(limit) if world is None else world.chance().randrange(limit)

    def uniform(low: float, high: float) -> float:
        world = _world()
        return real_uniform(low, high) if world is None else world.chance().uniform(low, high)

    def machine() -> str:
        world = _world()
        return f"machine of {world.who}" if world is not None and world.machines else real_machine()

    def run(self: Any, function: Any, tasks: Any, *, name: str) -> list[Any]:
        return real_run(self, function, tasks, name=name) if _world() is None else [function(task) for task in tasks]

    def shared(storage: Storage, file: str, options_of: Any) -> Iterator[Any]:
        if _world() is not None and file != lock.LOCK_FILE:
            yield _LockFile(storage, file)
        yield from real_shared(storage, file, options_of)

    def process_lock() -> Any:
        return _REAL_LOCK() if _world() is None else _REAL_LOCK(threads=TurnLock())  # type: ignore[arg-type]

    for module, name, value in (
        (time, "time", now),
        (time, "monotonic", monotonic),
        (time, "sleep", sleep),
        (time, "time_ns", nanoseconds),
        (uuid, "uuid4", unique),
        (secrets, "randbelow", below),
        (expected, "random", SimpleNamespace(uniform=uniform)),
        (processes, "_machine", machine),
        (lock, "_ProcessLock", process_lock),
        (lock, "_shared", shared),
        (engine.LocalRunner, "run", run),
        (operation, "begin", hudi.begin),
        (clock, "datetime", _Moments),
        (clock._PROCESS, "by_clock", _PerActor("by clock")),
        (clock._PROCESS, "by_timeline", _PerActor("by timeline")),
        (heartbeat, "threading", SimpleNamespace(Thread=_NoThread, Event=threading.Event)),
    ):
        patch.setattr(module, name, value)
    for kept in _locked_properties():
        patch.setattr(kept, "lock", nullcontext())
    try:
        yield
    finally:
        patch.undo()
