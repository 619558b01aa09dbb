"""Makes a history: writers and readers in processes of their own, some of which are killed or paused at random moments.

A killed writer is replaced by another one that makes its remaining steps. Pauses are short, or longer than a heartbeat counts. Which
moments these are is drawn from the seed as shares of all steps; what the processes do then depends on the machine.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from os import kill
from pathlib import Path

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from tests.histories.log import Log, Told, told_by
from tests.histories.plans import BEAT_MS, MISSES, Plan
from tests.histories.reader import STOP, run_reader
from tests.histories.workloads import WORKLOADS
from tests.histories.writer import OPERATION, Writer, run_writer
from tests.support.forking import forkserver

FIRST = "first"
"""The operation that made the first rows."""
_LOOK = 0.004
_MOMENT = 0.06
"""Seconds after a step began within which it is hit."""
_SHORT, _LONG = (0.02, 0.25), (2.5 * BEAT_MS * MISSES / 1000, 4 * BEAT_MS * MISSES / 1000)
_HANGS_AFTER = 120
"""Seconds without any step, after which a history does not end any more."""


@dataclass(slots=True)
class Slot:
    """A writer, and those before it that were killed."""

    process: BaseProcess
    generation: int = 0
    paused_until: float | None = None
    """None while it runs."""

    @property
    def is_alive(self) -> bool:
        return self.process.exitcode is None


@dataclass(slots=True)
class History:
    """What came of a plan. `events` counts kills and pauses."""

    plan: Plan
    path: Path
    told: Told = field(default_factory=Told)
    events: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def table(self) -> HoodieTable:
        return HoodieTable.open(str(self.path), options=self.plan.all_options)


def make_history(plan: Plan, folder: Path) -> History:
    """Make the table, run the history, and one more clustering and write after it. Raises `AssertionError` where a process hangs."""
    history, logs = History(plan, folder / "table"), folder / "logs"
    logs.mkdir()
    _make_table(plan, history.path)
    began = time.monotonic()
    _Run(plan, history, logs).run()
    history.seconds = time.monotonic() - began
    _write_once_more(plan, history.path, logs)
    history.told = told_by(logs)
    return history


def _make_table(plan: Plan, path: Path) -> None:
    workload = WORKLOADS[plan.workload](plan)
    ordering = ["ts"] if plan.ordering else []
    spec = TableSpec("t", workload.schema, ["id"], ordering, ["part"], plan.table_type, properties=dict(plan.properties))
    create_table(LocalStorage(str(path)), spec)
    table = HoodieTable.open(str(path), options=plan.all_options)
    batch = Writer(plan, str(path), Log(path.parent / "unused"), FIRST, random.Random(0)).batch(workload.first_rows())
    table.insert(batch, extra_metadata={OPERATION: FIRST})


def _write_once_more(plan: Plan, path: Path, logs: Path) -> None:
    """What dead writers left goes with it."""
    writer = Writer(plan, str(path), Log(logs / "last.log"), "last", random.Random(plan.seed))
    writer.cluster_at_last("id")
    assert WORKLOADS[plan.workload](plan).last(writer), "a write that nobody is beside was refused"


class _Run:
    def __init__(self, plan: Plan, history: History, logs: Path) -> None:
        self.plan, self.history, self.logs = plan, history, logs
        self.chance = random.Random(f"{plan.seed} events")
        self._context = forkserver()
        self._read: dict[Path, int] = {}
        self._steps = 0
        self._events = self._plan_events()

    def _plan_events(self) -> list[tuple[int, str]]:
        """After how many steps of all writers what happens to one of them."""
        sizes = self.plan.sizes
        kinds = ["kill"] * sizes.kills + ["pause"] * sizes.pauses + ["long pause"] * sizes.long_pauses
        return sorted((self.chance.randint(1, sizes.writers * sizes.operations), kind) for kind in kinds)

    def run(self) -> None:
        sizes = self.plan.sizes
        readers = [self._start(run_reader, number) for number in range(sizes.readers)]
        slots = {number: Slot(self._start(run_writer, number, 0)) for number in range(sizes.writers)}
        try:
            self._write(slots)
            (self.logs / STOP).touch()
            for reader in readers:
                reader.join(_HANGS_AFTER)
                assert reader.exitcode is not None, f"a reader hangs: {reader}"
        finally:
            for process in [*readers, *(slot.process for slot in slots.values())]:
                process.kill()
                process.join()

    def _start(self, main: object, *arguments: int) -> BaseProcess:
        process = self._context.Process(target=main, args=(self.plan, str(self.history.path), str(self.logs), *arguments))
        process.start()
        return process

    def _write(self, slots: dict[int, Slot]) -> None:
        """Until all writers have made their steps."""
        due: list[tuple[float, str]] = []
        last, moved = self._steps, time.monotonic()
        while any(slot.is_alive for slot in slots.values()):
            now = time.monotonic()
            self._resume(slots, now)
            self._count_steps()
            while self._events and self._events[0][0] <= self._steps:
                due.append((now + self.chance.uniform(0, _MOMENT), self._events.pop(0)[1]))
            for one in [one for one in due if one[0] <= now]:
                due.remove(one)
                self._happen(one[1], slots, now)
            last, moved = (last, moved) if self._steps == last else (self._steps, now)
            assert now < moved + _HANGS_AFTER, f"no writer has begun a step for {_HANGS_AFTER} s: {slots}"
            time.sleep(_LOOK)

    def _resume(self, slots: dict[int, Slot], now: float) -> None:
        for slot in slots.values():
            if slot.paused_until is not None and slot.paused_until <= now:
                slot.paused_until = None
                _signal(slot, signal.SIGCONT)

    def _happen(self, kind: str, slots: dict[int, Slot], now: float) -> None:
        running = [number for number, slot in slots.items() if slot.is_alive and (kind == "kill" or slot.paused_until is None)]
        if not running:
            return
        number = self.chance.choice(running)
        slot = slots[number]
        self.history.events[kind] += 1
        if kind == "kill":
            slot.process.kill()
            slot.process.join()
            if slot.process.exitcode == -signal.SIGKILL:
                slots[number] = Slot(self._start(run_writer, number, slot.generation + 1), slot.generation + 1)
            return
        slot.paused_until = now + self.chance.uniform(*(_SHORT if kind == "pause" else _LONG))
        _signal(slot, signal.SIGSTOP)

    def _count_steps(self) -> None:
        for path in self.logs.glob("w*.log"):
            with open(path, "rb") as file:
                file.seek(self._read.get(path, 0))
                news = file.read()
            self._read[path] = self._read.get(path, 0) + len(news)
            self._steps += news.count(b'{"step"')


def _signal(slot: Slot, number: signal.Signals) -> None:
    """To a process that may have ended: its number is its own until it is joined."""
    if slot.process.pid is not None and slot.is_alive:
        kill(slot.process.pid, number)
