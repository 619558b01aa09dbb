"""What a history must have come to, worked out from what its processes said and from the timeline's own bytes.

The commits say which operation they are of, so it is known what became of those whose process was killed. All of them in the order in
which they show are replayed on a model that shares no code with the engine; what the table holds, and every reading, must be what the model
has. Wherever an instant is named here, the moment is meant at which it shows: in versions 8 and 9 another one than it was requested at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakehouse_engine.verify import verify
from tests.crash.checker import check_recovered, look
from tests.crash.timeline import Timeline, Violation
from tests.histories.harness import FIRST, History
from tests.histories.log import Json, Operation, Outcome
from tests.histories.plans import RETAINED
from tests.histories.reader import COMMIT_TIME, as_json
from tests.histories.workloads import WORKLOADS
from tests.histories.writer import OPERATION
from tests.support.readers import first_difference, read_with_hudi_rs, user_columns
from tests.support.table_model import TableModel

Row = tuple[Any, ...]
_SERVICES = ("COMPACT", "LOG_COMPACT", "CLUSTER")
_KEPT_LOCKS = ("table.lock",)


class Judge:
    def __init__(self, history: History) -> None:
        self.history, self.plan, self.told = history, history.plan, history.told
        self.workload = WORKLOADS[self.plan.workload](self.plan)
        self.found: list[str] = []

    def judge(self) -> list[str]:
        """What is wrong, a sentence each; nothing after a good history."""
        try:
            self._to_moments()
            self._judge_operations()
            self._replay()
        except Violation as error:
            return [*self.found, str(error)]
        self._judge_end()
        self._judge_readings()
        return self.found

    def _tell(self, *sentences: str) -> None:
        self.found.extend(sentences)

    # operations

    @cached_property
    def _timeline(self) -> Timeline:
        return look(self.history.table.storage, tuple(self.workload.schema.names)).timeline

    def _moment(self, instant: str) -> str:
        """When an instant shows, of those that are archived too."""
        found = self._timeline.moment(instant)
        return self._timeline.completions.get(f"{instant}.", found) if found == instant else found

    def _to_moments(self) -> None:
        for operation in self.told.operations.values():
            for name in ("instant", "seen", "until"):
                setattr(operation, name, self._moment(getattr(operation, name)))
        for reading in self.told.readings:
            reading.update({name: self._moment(reading[name]) for name in ("at", "begin", "end", "seen", "until") if name in reading})
            if reading["reading"] == "changes":
                reading["rows"] = [[self._moment(row[0]), *row[1:]] for row in reading["rows"]]

    @cached_property
    def _commits(self) -> dict[str, str]:
        """Operation by moment, of all commits there ever were, in order."""
        timeline = self._timeline
        commits = {}
        for instant in timeline.writes:
            commit = timeline.commit(instant)
            name = commit["extraMetadata"].get(OPERATION)
            if name is None and commit.get("operationType") not in _SERVICES:
                self._tell(f"the commit {instant} is of no operation")
            elif name is not None:
                commits[self._moment(instant)] = name
        return commits

    def _judge_operations(self) -> None:
        published: dict[str, list[str]] = {}
        for instant, name in self._commits.items():
            published.setdefault(name, []).append(instant)
        for name in published.keys() - self.told.operations.keys() - {FIRST}:
            self._tell(f"{published[name]} are of {name}, which nobody began")
        for operation in self.told.operations.values():
            self._tell(*self._wrong(operation, published.get(operation.name, [])))
        self._judge_order()

    def _wrong(self, operation: Operation, instants: list[str]) -> Iterator[str]:
        what = f"{operation.kind} {operation.name} ({operation.outcome.value} {operation.instant}{operation.error})"
        if len(instants) > 1:
            yield f"{what} was committed more than once: {instants}"
        if operation.outcome is Outcome.ACKNOWLEDGED and operation.instant not in instants:
            yield f"{what} is not there; its commits: {instants}"
        if operation.outcome in (Outcome.REFUSED, Outcome.NOTHING) and instants:
            yield f"{what} was committed: {instants}"

    def _judge_order(self) -> None:
        """Whatever was acknowledged before another operation began is before it, and was seen by it."""
        done = sorted(
            (one for one in self.told.operations.values() if one.outcome is Outcome.ACKNOWLEDGED), key=lambda one: one.ended
        )
        self._ends = [one.ended for one in done]
        self._newest, newest = [""], ""
        for one in done:
            newest = max(newest, one.instant)
            self._newest.append(newest)
        for one in self.told.operations.values():
            before = self._acknowledged_before(one.began)
            if one.seen < before:
                self._tell(f"{one.name} saw {one.seen} as the newest commit after {before} was acknowledged")
            if one.outcome is Outcome.ACKNOWLEDGED and one.instant <= before:
                self._tell(f"{one.name} is the commit {one.instant}, and began after {before} was acknowledged")

    def _acknowledged_before(self, moment: float) -> str:
        """The newest instant that was acknowledged before then."""
        return self._newest[bisect_right(self._ends, moment)]

    # the model

    def _replay(self) -> None:
        model = TableModel(["id"], ["part"], "ts" if self.plan.ordering else None, self.plan.is_global)
        for instant, name in self._commits.items():
            if name == FIRST:
                model.insert(self.workload.first_rows(), instant)
                continue
            operation = self.told.operations.get(name)
            if operation is None:
                continue
            try:
                self.workload.apply(model, operation.kind, operation.what, instant)
            except (LookupError, AssertionError) as error:
                raise Violation(f"{operation.kind} {name} was committed at {instant}, and could not be: {error!r}") from error
        self.model, self._times = model, list(model.snapshots)
        self._states: dict[str, list[Row]] = {}
        for operation in self.told.operations.values():
            if operation.outcome is Outcome.NOTHING and not self._may_be_nothing(operation):
                self._tell(f"{operation.kind} {operation.name} had nothing to change, and what it changes was there all the time")

    def _at(self, instant: str) -> str:
        """The last commit of the model that is not after an instant."""
        return self._times[bisect_right(self._times, instant) - 1]

    def _state(self, instant: str) -> list[Row]:
        time = self._at(instant)
        if time not in self._states:
            self._states[time] = self._plain(self.model.snapshot(time), self.workload.schema.names)
        return self._states[time]

    def _plain(self, rows: list[Json], names: list[str]) -> list[Row]:
        return _ordered([[row[name] for name in names] for row in rows])

    def _between(self, first: str, last: str) -> list[str]:
        begin, end = bisect_right(self._times, first) - 1, bisect_right(self._times, last)
        return self._times[max(0, begin) : end]

    def _may_be_nothing(self, operation: Operation) -> bool:
        """Whether there was a moment at which nothing of what it deletes was there."""
        if operation.kind == "drop_partition":
            parts = {operation.what["part"]}
            return any(not parts & {row[1] for row in self._state(time)} for time in self._between(operation.seen, operation.until))
        states = (self._state(time) for time in self._between(operation.seen, operation.until))
        return any(self._changes_nothing(operation.what, state) for state in states)

    def _changes_nothing(self, what: Json, state: list[Row]) -> bool:
        """Whether none of the keys to delete is there, and all rows that come are older than what is stored of them."""
        stored = {self._key(row[0], row[1]): row[-1] for row in state}
        deleted = [self._key(row["id"], row["part"]) for row in what.get("keys", ())]
        given = {self._key(row["id"], row["part"]): row["ts"] for row in what.get("rows", [what] if "ts" in what else [])}
        late = self.plan.ordering and all(stored.get(key, -1) > ts for key, ts in given.items())
        return bool(deleted or given) and (late or not given) and not any(key in stored for key in deleted)

    def _key(self, name: str, part: str) -> tuple[str, str | None]:
        return name, None if self.plan.is_global else part

    # the end

    def _judge_end(self) -> None:
        table, names = self.history.table, self.workload.schema.names
        ours = table.to_arrow(meta_columns=True)
        expected = self._state(self._times[-1])
        self._compare("the end", _ordered([list(row.values()) for row in ours.select(names).to_pylist()]), expected)
        difference = first_difference(user_columns(read_with_hudi_rs(self.history.path)), user_columns(ours))
        if difference is not None:
            self._tell(f"hudi-rs reads another end: {difference}")
        report = verify(table.state)
        self._tell(*(f"verify: {finding}" for finding in report.findings))
        self._judge_files()
        self._judge_savepoints()

    def _judge_files(self) -> None:
        storage = self.history.table.storage
        try:
            found = look(storage, tuple(self.workload.schema.names))
            check_recovered(storage, found)
        except Violation as error:
            self._tell(f"left over: {error}")
            return
        self.history.table.archive()  # a process that was killed while it waited is forgotten then
        plans = {f"compaction-{time}.lock" for time, action in found.pending.items() if action in ("compaction", "clustering")}
        locks = [entry.path for entry in storage.walk(".hoodie/.locks") if entry.name not in {*_KEPT_LOCKS, *plans}]
        beats = [entry.path for entry in storage.walk(".hoodie/.heartbeat")]
        if left := [*locks, *beats]:
            self._tell(f"left over: {left}")

    def _judge_savepoints(self) -> None:
        """Those that were acknowledged are there, and keep what they were made of."""
        there = {savepoint.instant for savepoint in self.history.table.savepoints()}
        made = {one["instant"] for one in self.told.services if one["service"] == "savepoint" and one["outcome"] == "acknowledged"}
        deleted = {one["of"] for one in self.told.services if one["service"] == "delete_savepoint"}
        self._tell(*(f"the savepoint {instant} is gone" for instant in made - deleted - there))
        for instant in there:
            self._compare(f"the savepoint {instant}", self._rows(instant), self._state(self._moment(instant)))

    def _rows(self, as_of: str) -> list[Row]:
        found: pa.Table = self.history.table.to_arrow(as_of=as_of).select(self.workload.schema.names)
        return _ordered([list(row.values()) for row in found.to_pylist()])

    def _compare(self, what: str, actual: list[Row], expected: list[Row]) -> None:
        if actual == expected:
            return
        missing = [row for row in expected if row not in actual]
        extra = [row for row in actual if row not in expected]
        self._tell(f"{what} has not the rows of the commits before it: missing {missing[:3]}, unexpected {extra[:3]}")

    # readings

    def _judge_readings(self) -> None:
        for failure in self.told.failures:
            if failure.get("passed", 0) < RETAINED:
                self._tell(f"{failure['failed']}: {failure['error']}")
        for reading in self.told.readings:
            rows = _ordered(reading["rows"])
            if reading["reading"] == "changes":
                self._judge_changes(reading, rows)
                continue
            if reading["reading"] == "as_of":
                fits = rows == self._state(reading["at"])
            else:
                times = self._between(reading["seen"], reading["until"])
                fits = any(rows == self._state(time) for time in times)
                before = self._acknowledged_before(reading["began"])
                if reading["seen"] < before:
                    self._tell(f"a reader saw {reading['seen']} as the newest commit after {before} was acknowledged")
            wrong = self.workload.wrong(reading["rows"])
            if wrong is not None or not fits:
                self._tell(f"a reading ({as_json(reading)}) is no state of the table{': ' + wrong if wrong else ''}")

    def _judge_changes(self, reading: Json, rows: list[Row]) -> None:
        begin, end = reading["begin"], reading["end"]
        changed = [row for row in self.model.snapshot(self._at(end)) if begin < row[COMMIT_TIME] <= end]
        self._compare(f"changes from {begin} to {end}", rows, self._plain(changed, [COMMIT_TIME, *self.workload.schema.names]))

    # for people

    def figures(self) -> str:
        """What the history was."""
        outcomes = Counter(one.outcome.value for one in self.told.operations.values())
        refusals = Counter(one.error for one in self.told.operations.values() if one.outcome is Outcome.REFUSED)
        services = Counter(
            f"{one['service']} {one['outcome']}" + (f" ({one['error']})" if one.get("error") else "")
            for one in self.told.services
            if one["outcome"] != "began"
        )
        readings = Counter(reading["reading"] for reading in self.told.readings)
        return (
            f"{self.plan.workload} {self.plan.table_type} {dict(self.plan.properties) or ''}: {len(self.told.operations)} writes, "
            f"{dict(outcomes)}, refused {dict(refusals)}, given up {self.told.given_up}; {dict(self.history.events)}; "
            f"services {dict(services)}; readings {dict(readings)}; {len(self.found)} violations; {self.history.seconds:.1f} s"
        )


def _ordered(rows: list[list[Any]]) -> list[Row]:
    """In an order that depends on nothing but the rows."""
    return sorted(tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in rows)
