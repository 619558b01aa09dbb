"""Crashes an action at a storage call, lets the next action recover, and checks the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import CommitOutcomeUnknownError, InstantCleanedError, LakehouseError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import Found, Rows, check_kept, check_recovered, check_rows, expect, look, saved_rows
from tests.crash.scenarios import COLUMNS, PROBES, Case, batch, by_key, copy_of, open_table

FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ACK, Fault.TRANSIENT, Fault.PERSISTENT)
LATER = ("probe", 2, "x", "p2")


@contextmanager
def at(point: str) -> Iterator[None]:
    """Name the point that fails."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{point}: {error!r}") from error


class Harness:
    """One case, crashed again and again. What comes after a crash is done once for each table that crashes leave.

    `states` counts those tables, `cases` the crashes. `late` are data files that come after their write was taken back (`ObjectHarness`).
    """

    def __init__(self, case: Case) -> None:
        self.case, self.start = case, case.setup()
        self.before = look(self.start.storage, COLUMNS)
        self.cases = 0
        self.late: tuple[str, ...] = ()
        self._states: set[Any] = set()
        self._served: set[Any] = set()

    @property
    def states(self) -> int:
        return len(self._states)

    def calls(self) -> list[str]:
        """Every mutating call that the action makes when all goes well."""
        storage = FaultyStorage(copy_of(self.start.storage))
        self.case.act(open_table(storage))
        return storage.mutations

    def check_point(self, call: int, fault: Fault) -> None:
        """One point: crash, look, go on, look again."""
        storage = copy_of(self.start.storage)
        allowed = self.run(FaultyStorage(storage, call, fault))
        self.check_left(storage, *allowed)

    def check_recovery(self, call: int) -> int:
        """The action dies before `call`; then what repairs it dies in its turn after each of its calls, and the write after that recovers.

        Returns how many points that were. Dying before a call leaves what dying after the one before it leaves, since recoveries write
        no data files.
        """
        crashed = copy_of(self.start.storage)
        self.run(FaultyStorage(crashed, call, Fault.CRASH_BEFORE))
        rows, points = self.settled(look(crashed, COLUMNS)), self._recovery_calls(crashed)
        for inner in range(1, points + 1):
            storage = copy_of(crashed)
            recovering = FaultyStorage(storage, inner, Fault.CRASH_AFTER)
            try:
                self._recover(recovering)
            except SimulatedCrash:
                pass
            else:
                raise AssertionError(f"the recovery made fewer than {inner} calls")
            with at(f"crash before call {call}, then after call {inner} of the recovery, {recovering.mutations[-1]}"):
                self.check_left(storage, rows, *self.between(), settled=rows)
        return points

    def _recover(self, storage: FaultyStorage) -> None:
        if self.case.scenario.again:
            self.case.act(open_table(storage))
        else:
            open_table(storage).upsert(batch(PROBES))

    def _recovery_calls(self, crashed: MemoryStorage) -> int:
        """How many mutating calls the recovery makes; those of a write before it requests an instant of its own."""
        storage = FaultyStorage(copy_of(crashed))
        self._recover(storage)
        own = [number for number, call in enumerate(storage.mutations) if call.endswith("commit.requested")]
        return len(storage.mutations) if self.case.scenario.again else own[-1]

    def check_all(self) -> None:
        """Every point of the action in depth one, then in depth two."""
        calls = self.calls()
        for call, name in enumerate(calls, 1):
            for fault in FAULTS:
                with at(f"{fault} at call {call} of {len(calls)}, {name}"):
                    self.check_point(call, fault)
        for call, name in enumerate(calls, 1):
            with at(name):
                self.check_recovery(call)

    def run(self, storage: Storage) -> tuple[Rows, ...]:
        """Run the action to its end, whichever it is; which rows the table may have then."""
        begun = (self.start.rows, *self.between(), self.case.after())
        try:
            self.case.act(open_table(storage))
        except (SimulatedCrash, CommitOutcomeUnknownError):
            return begun
        except LakehouseError:
            # What goes back goes on, once its plan is there; a write that failed was taken back.
            return (self.start.rows,) if self.case.scenario.goes_back is None else begun
        return (self.case.after(),)

    def between(self) -> list[Rows]:
        """Rows that a reader may find while an action goes back commit by commit."""
        return [self.start.history[time] for time in self.case.gone()]

    def check_left(self, storage: Storage, *allowed: Rows, settled: Rows | None = None) -> None:
        """What a crash left, and how the next write gets along with it, which loses no row."""
        self.cases += 1
        left = look(storage, COLUMNS)
        check_rows(left, *allowed)
        self._keep(self.before, left)
        rows = self.settled(left) if settled is None else settled
        state = shape(storage, left)
        if state not in self._states:
            check_rows(left, _by_key(open_table(storage).read()))
            self.write_on(storage, left, rows)
            self._states.add(state)

    def settled(self, left: Found) -> Rows:
        """What the table holds once it is repaired: what was begun of going back goes on, everything else stays as it is."""
        going_back = any(action in ("rollback", "restore") for action in left.pending.values())
        return self.case.after() if going_back and self.case.scenario.goes_back is not None else left.rows

    def _keep(self, before: Found, after: Found) -> None:
        """What was completed stays, but for what the action takes away."""
        back, gone = self.case.scenario.goes_back, set[str]()
        if back is not None:
            gone = {time for time in (*before.completed, *before.timeline.archived) if time > self.start.instants[back]}
        check_kept(before, after, gone=gone, released=before.timeline.savepoints if self.case.scenario.releases else ())

    def write_on(self, storage: Storage, left: Found, rows: Rows) -> None:
        """The next write, of a process that knows nothing of what happened: it repairs the table, loses no row and adds its own."""
        with at("the next write"):
            instant = open_table(storage).upsert(batch(PROBES)).instant
        assert instant is not None
        repaired, expected = look(storage, COLUMNS), {**rows, **by_key(*PROBES)}
        check_rows(repaired, expected)
        self._keep(left, repaired)
        check_recovered(storage, repaired, late=self.late)
        check_rows(repaired, _by_key(open_table(storage).read()))
        state = shape(storage, repaired)
        if state not in self._served:
            last = max(self.before.writes, default="")
            own = {time: rows for time in repaired.writes if last < time < instant and not is_empty(repaired.timeline.commit(time))}
            serve(storage, repaired, {**self.start.history, **own, instant: expected}, self.late)
            self._served.add(state)


_INSTANT, _FILE_ID, _TOKEN = re.compile(r"\d{17}"), re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), re.compile(r"_\d+-\d+-\d+")


def shape(storage: Storage, found: Found) -> Any:
    """What makes a difference to a recovery: which files there are, but for their ids and the exact time of their instants, and rows."""
    entries = storage.walk()
    times = sorted({time for entry in entries for time in _INSTANT.findall(entry.path)})
    place = {time: f"<{number}>" for number, time in enumerate(times)}
    names = Counter(
        (_TOKEN.sub("", _FILE_ID.sub("", _INSTANT.sub(lambda match: place[match[0]], entry.path))), entry.size > 0) for entry in entries
    )
    return frozenset(names.items()), frozenset(found.rows.items())


def serve(storage: Storage, found: Found, history: Mapping[str, Rows], late: Iterable[str] = ()) -> None:
    """Every reading is right, every other action succeeds, and does no more than it should."""
    check_readings(storage, found, history)
    table, last = open_table(storage), found.writes[-1]
    with at("the next savepoint"):
        table.savepoint(last)
    with at("the write after it"):
        written = table.upsert(batch([LATER])).instant
    assert written is not None
    history = {**history, written: {**found.rows, **by_key(LATER)}}
    if found.is_merge_on_read:
        with at("the log compaction that is planned"):
            table.run_compaction(log_compaction=True)
        with at("the next compaction"):
            table.compact()
            while table.run_compaction().instant is not None:
                pass
    with at("the clusterings that are planned"):
        while table.run_clustering().instant is not None:
            pass
    with at("the next clean"):
        table.clean(1)
    with at("the next archival"):
        table.archive(2, 3)
    served = look(storage, COLUMNS)
    check_rows(served, history[written])
    check_kept(found, served)
    check_recovered(storage, served, services=(), late=late)
    check_readings(storage, served, history)
    with at("the next restore"):
        table.restore(last)
    restored = look(storage, COLUMNS)
    check_rows(restored, found.rows)
    check_recovered(storage, restored, services=(), late=late)


def check_readings(storage: Storage, found: Found, history: Mapping[str, Rows]) -> None:
    """What the engine reads now, as of every instant that is kept, and between any two of them, is what was there."""
    table, moment = open_table(storage), found.timeline.moment
    check_rows(found, _by_key(table.read()))
    readable: list[str] = []
    for time in (time for time in found.writes if time in found.completed):
        try:
            rows = _by_key(table.read(as_of=moment(time)))
        except InstantCleanedError:
            expect(not must_be_readable(found, time), f"the table cannot be read as of {time}")
            readable.clear()
            continue
        expect(rows == rows_at(history, time, moment), f"as of {time} rows are {rows}, not {rows_at(history, time, moment)}")
        readable.append(time)
    # Savepointed instants may have outlived the archival of their neighbours.
    whole = min((time for time in readable if not found.timeline.archived or time not in found.timeline.savepoints), default="")
    for begin, end in pairwise(time for time in readable if time >= whole):
        old, new = rows_at(history, begin, moment), rows_at(history, end, moment)
        rows = _by_key(table.read(query="incremental", begin=moment(begin), end=moment(end)))
        changed = {key: row for key, row in new.items() if old.get(key) != row}
        expect(rows == changed, f"from {begin} to {end} rows are {rows}, not {changed}")
    for time in found.timeline.savepoints:
        expect(saved_rows(storage, found, time, COLUMNS) == rows_at(history, time, moment), f"the savepoint {time} does not hold its rows")


def must_be_readable(found: Found, time: str) -> bool:
    """Whether nothing allows that the table cannot be read as of an instant: a savepoint keeps it, or it is younger than cleans."""
    moment = found.timeline.moment
    return time in found.timeline.savepoints or moment(time) >= moment(found.timeline.retained_since())


def is_empty(commit: Mapping[str, Any]) -> bool:
    """Whether a commit changes nothing, being in the place of one that may be on its way to an object store. (A restore makes one too.)"""
    changes = any(commit["partitionToWriteStats"].values()) or commit.get("partitionToReplaceFileIds")
    return not changes and "lakehouse.restored.to" not in commit["extraMetadata"]


def rows_at(history: Mapping[str, Rows], time: str, moment: Callable[[str], str]) -> Rows:
    """Rows as of an instant, which `moment` says when it shows; services change none, and before the first one there are none."""
    last = max((known for known in history if moment(known) <= moment(time)), key=moment, default=None)
    return {} if last is None else history[last]


def _by_key(table: pa.Table) -> Rows:
    return by_key(*((row["id"], row["ts"], row["part"], row["v"]) for row in table.to_pylist()))
