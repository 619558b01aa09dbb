"""Random histories of a table, as data: how the table is made, and steps that can be done again without those that do not matter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import CommitConflictError, InstantCleanedError, LakehouseError, RestoreError, RollbackError, SavepointError
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import ServiceOptions
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.services.metadata.upkeep import run_due
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import buildable, check_metadata
from tests.support.table_model import COMMIT_TIME, DELETED, Row, TableModel

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("tags", pa.list_(pa.int32())),
        (DELETED, pa.bool_()),
    ]
)
KEYS, PARTITIONS = 12, ("x", "z=1")
_PAYLOADS = {
    "overwrite": "OverwriteWithLatestAvroPayload",
    "event_time": "DefaultHoodieRecordPayload",
    "partial": "PartialUpdateAvroPayload",
}
_WRITES = {
    "bulk_insert": 1,
    "insert": 2,
    "upsert": 6,
    "upsert_columns": 1,
    "delete": 3,
    "insert_overwrite": 1,
    "insert_overwrite_table": 0.5,
    "delete_partitions": 0.5,
}
_SERVICES = {"rollback": 1.5, "savepoint": 1, "delete_savepoint": 0.4, "restore": 0.8, "clean": 1, "archive": 0.8}
_OF_METADATA = {"serve_metadata": 2.5, "build_metadata": 0.7}
_KEPT = {"hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 1}
_COMPACTIONS = {"schedule": 1.5, "run": 1.5, "compact": 1, "schedule_logs": 2}


@dataclass(frozen=True)
class Make:
    """What kind of table it is."""

    table_type: str
    partitioned: bool
    payload: str
    ordering: bool
    index: str
    options: tuple[tuple[str, Any], ...]
    version: int = 6
    indexed: bool = False

    @classmethod
    def random(cls, chance: random.Random, version: int = 6, *, indexed: bool = False) -> Make:
        """`indexed`: with a metadata table, and with its record index where keys are unique in the whole table."""
        table_type = chance.choice(["cow", "mor", "mor"])
        payload = chance.choice(["overwrite", "event_time", "event_time", "partial"])
        if version != 6 and payload == "partial":
            payload = "event_time"  # tables that are made in later versions have no payload class
        # Among log records Hudi 0.15 orders by the ordering field under every payload; tables of ours name none where it must not count.
        ordering = payload != "overwrite" or (table_type == "cow" and chance.random() < 0.5 and version == 6)
        index = chance.choice(["GLOBAL_SIMPLE", "SIMPLE", *(["BUCKET"] if table_type == "mor" else ["GLOBAL_BLOOM", "BLOOM"])])
        options = {
            "hoodie.parquet.small.file.limit": chance.choice([0, 1700, 100_000]),
            "hoodie.parquet.max.file.size": chance.choice([2000, 200_000]),
            "lakehouse.parquet.row.group.rows": chance.choice([2, 500]),
            "hoodie.logfile.data.block.format": chance.choice(["parquet", "avro"]),
        }
        if index == "BUCKET":
            options["hoodie.bucket.index.num.buckets"] = chance.choice([1, 3])
        if indexed and index.startswith("GLOBAL") and chance.random() < 0.8:
            index = "GLOBAL_RECORD_LEVEL_INDEX"
        return cls(table_type, chance.random() < 0.7, payload, ordering, index, tuple(options.items()), version, indexed)

    def build(self) -> tuple[LocalTable, TableModel]:
        storage = MemoryStorage()
        properties = {"hoodie.index.type": self.index, "hoodie.datasource.write.payload.class": _PAYLOADS[self.payload]}
        properties.update({key: str(value) for key, value in self.options if "bucket" in key})
        partitions = ["part"] if self.partitioned else []
        ordering, version = ["ts"] if self.ordering else [], TableVersion(self.version)
        create_table(storage, TableSpec("t", SCHEMA, ["id"], ordering, partitions, self.table_type, properties=properties, version=version))
        if self.indexed:
            self.build_metadata(storage)
        is_global = self.index.startswith("GLOBAL") or not self.partitioned
        model = TableModel(["id"], partitions, "ts" if self.ordering else None, is_global, self.payload)
        return LocalTable(storage, dict(self.options)), model

    def build_metadata(self, storage: Storage) -> None:
        """Build what the metadata table does not have. Raises `CommitConflictError` while anything is pending."""
        is_unique = self.index.startswith("GLOBAL") or not self.partitioned
        names = [name for name in buildable(TableState.load(storage)) if is_unique or name != RECORD_INDEX]
        build(storage, names, lock_timeout_ms=5000)


@dataclass(frozen=True)
class Step:
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


class Refused(Exception):
    """The step cannot be done on this table; leaving it out is all right."""


class History:
    """A table and its model, changed together."""

    def __init__(self, make: Make) -> None:
        self.make = make
        self.table, self.model = make.build()
        self.savepoints: dict[str, str] = {}
        self.pending: list[str] = []
        self.pending_logs: list[str] = []
        self.floor = ""

    # making up steps

    def propose(self, chance: random.Random) -> Step:
        weights = {**_WRITES, **_SERVICES, **(_COMPACTIONS if self.make.table_type == "mor" else {})}
        if self.make.indexed:
            weights |= _OF_METADATA
        if self.pending_logs:
            weights["run_logs"] = 4
        if not self.make.partitioned:
            del weights["delete_partitions"]
        name = chance.choices(list(weights), list(weights.values()))[0]
        return Step(name, getattr(self, f"_{name}_arguments", self._rows)(chance))

    def _row(self, chance: random.Random, key: int, *, marked: bool = False) -> Row:
        return {
            "id": key,
            "part": chance.choice(PARTITIONS),
            "ts": chance.choice([None, *range(6)]),
            "a": chance.choice([None, "", "q", "Ω"]),
            "tags": chance.choice([None, [], [1, None]]),
            DELETED: chance.random() < 0.15 if marked else None,
        }

    def _rows(self, chance: random.Random) -> dict[str, Any]:
        """Rows whose keys are stored nowhere; each key once."""
        stored = {row["id"] for _, row in self.model.stored.values()}
        free = [key for key in range(KEYS) if key not in stored]
        return {"rows": [self._row(chance, key) for key in chance.sample(free, min(len(free), chance.randint(0, 5)))]}

    def _some(self, chance: random.Random, *, marked: bool = False, most: int = 5) -> dict[str, Any]:
        return {"rows": [self._row(chance, chance.randrange(KEYS), marked=marked) for _ in range(chance.randint(0, most))]}

    def _upsert_arguments(self, chance: random.Random) -> dict[str, Any]:
        return self._some(chance, marked=True, most=7)

    def _upsert_columns_arguments(self, chance: random.Random) -> dict[str, Any]:
        return self._some(chance)

    def _delete_arguments(self, chance: random.Random) -> dict[str, Any]:
        return self._some(chance)

    def _insert_overwrite_table_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"rows": list({row["id"]: row for row in self._some(chance)["rows"]}.values())}

    _insert_overwrite_arguments = _insert_overwrite_table_arguments

    def _delete_partitions_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"values": chance.sample(PARTITIONS, chance.randint(1, 2))}

    def _savepoint_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"name": f"s{chance.randrange(1000)}", "back": chance.choice([0, 0, 1, 2])}

    def _restore_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"name": chance.choice([*self.savepoints, "none"]), "cascade": chance.random() < 0.5}

    def _delete_savepoint_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"name": chance.choice([*self.savepoints, "none"])}

    def _clean_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"retain": chance.randint(1, 4)}

    def _archive_arguments(self, chance: random.Random) -> dict[str, Any]:
        least = chance.randint(2, 4)
        return {"least": least, "most": least + chance.randint(0, 2)}

    def _nothing(self, chance: random.Random) -> dict[str, Any]:
        return {}

    _serve_metadata_arguments = _build_metadata_arguments = _nothing
    _schedule_arguments = _run_arguments = _compact_arguments = _rollback_arguments = _nothing
    _run_logs_arguments = _nothing

    def _schedule_logs_arguments(self, chance: random.Random) -> dict[str, Any]:
        return {"blocks": chance.choice([1, 1, 2])}

    # doing them

    def do(self, step: Step) -> None:
        """Raises `Refused` where it does not apply to what the table holds now."""
        if step.name in _WRITES:
            self._write(step)
        else:
            getattr(self, f"_do_{step.name}")(**step.arguments)

    def _arrow(self, rows: Sequence[Row], names: Sequence[str] = SCHEMA.names) -> pa.Table:
        schema = pa.schema([SCHEMA.field(name) for name in names])
        return pa.Table.from_pylist([{name: row[name] for name in names} for row in rows], schema=schema)

    def _write(self, step: Step) -> None:
        rows = step.arguments.get("rows", [])
        keys = ["id"] if self.model.is_global else ["id", "part"]
        doing: dict[str, tuple[Callable[[], Any], Callable[[str], None]]] = {
            "bulk_insert": (lambda: self.table.bulk_insert(self._arrow(rows)), lambda time: self.model.insert(rows, time)),
            "insert": (lambda: self.table.insert(self._arrow(rows)), lambda time: self.model.insert(rows, time)),
            "upsert": (lambda: self.table.upsert(self._arrow(rows)), lambda time: self.model.upsert(rows, time)),
            "upsert_columns": (
                lambda: self.table.upsert(self._arrow(rows), columns=["ts", "a"]),
                lambda time: self.model.upsert(rows, time, ["ts", "a"]),
            ),
            "delete": (lambda: self.table.delete(self._arrow(rows, keys)), lambda time: self.model.delete(rows, time)),
            "insert_overwrite": (
                lambda: self.table.insert_overwrite(self._arrow(rows)),
                lambda time: self.model.insert_overwrite(rows, time),
            ),
            "insert_overwrite_table": (
                lambda: self.table.insert_overwrite_table(self._arrow(rows)),
                lambda time: self.model.insert_overwrite_table(rows, time),
            ),
            "delete_partitions": (
                lambda: self.table.delete_partitions([f"part={value.replace('=', '%3D')}" for value in step.arguments["values"]]),
                lambda time: self.model.delete_partitions([(value,) for value in step.arguments["values"]], time),
            ),
        }
        self._check_possible(step)
        write, change = doing[step.name]
        try:
            instant = write().instant
        except CommitConflictError:
            # A row that must be merged into its base file at once, or a partition to replace, is in the plan of a compaction.
            assert self.pending, "nothing is pending that a write could be in conflict with"
            raise Refused from None
        if instant is not None:
            change(instant)
            return
        before = self.model.snapshot()
        change("none")
        del self.model.snapshots["none"]
        assert self.model.snapshot() == before, "there was something to do, but nothing was committed"

    def _check_possible(self, step: Step) -> None:
        """Keys are not looked up by inserts and overwrites; the model knows one row a key."""
        rows = step.arguments.get("rows", [])
        if step.name in ("bulk_insert", "insert", "insert_overwrite"):
            replaced = {self.model.partition_of(row) for row in rows} if step.name == "insert_overwrite" else set()
            kept = {row["id"] for _, row in self.model.stored.values() if self.model.partition_of(row) not in replaced}
            if kept & {row["id"] for row in rows}:
                raise Refused

    @property
    def newest(self) -> str | None:
        return max(self.model.snapshots, default=None)

    def _do_schedule(self) -> None:
        instant = self.table.schedule_compaction().instant
        if instant is not None:
            self.pending.append(instant)

    def _do_run(self) -> None:
        if not self.pending:
            raise Refused
        instant = self.table.run_compaction().instant
        assert instant in self.pending, f"{instant} was compacted, planned was {self.pending}"
        self.pending.remove(instant)
        self.model.compact(instant)

    def _do_compact(self) -> None:
        result = self.table.compact()
        if result.instant is not None:
            self.pending = [time for time in self.pending if time != result.instant]
            self.model.compact(result.instant)

    def _do_schedule_logs(self, blocks: int) -> None:
        instant = self.table.schedule_compaction(log_compaction=True, blocks=blocks).instant
        if instant is not None:
            self.pending_logs.append(instant)

    def _do_run_logs(self) -> None:
        """The oldest plan. Where its slices were logged to since it has a new instant, where they were rewritten it is dropped."""
        if not self.pending_logs:
            raise Refused
        planned, newest = self.pending_logs.pop(0), self.newest
        instant = self.table.run_compaction(log_compaction=True).instant
        if instant is None:
            return
        assert instant == planned or newest is None or instant > newest, f"{instant} was run, planned was {planned}, newest is {newest}"
        self.model.compact(instant)

    def _do_rollback(self) -> None:
        target = self.newest
        if target is None:
            raise Refused
        try:
            result = self.table.rollback()
        except (RollbackError, InstantCleanedError):
            # A savepoint keeps it, what was before is gone, or logs are on a compaction.
            before = [time for time in self.model.snapshots if time < target]
            whole = not before or max(before) >= self.floor
            assert target in self.savepoints.values() or not whole or target in self._compactions(), f"{target} could be rolled back"
            raise Refused from None
        assert result.rolled_back == target
        # Compactions that were planned before it stay.
        pending, logs = ([time for time in times if time < target] for times in (self.pending, self.pending_logs))
        self._gone_back(max((time for time in self.model.snapshots if time < target), default=None))
        self.pending, self.pending_logs = pending, logs

    def _compactions(self) -> set[str]:
        times = list(self.model.snapshots)
        return {later for earlier, later in pairwise(times) if self.model.snapshots[earlier] == self.model.snapshots[later]}

    def _gone_back(self, target: str | None) -> None:
        self.model.go_back(target)
        self.pending = [time for time in self.pending if target is not None and time < target]
        self.pending_logs = [time for time in self.pending_logs if target is not None and time < target]
        self.savepoints = {name: time for name, time in self.savepoints.items() if target is not None and time <= target}

    def _do_savepoint(self, name: str, back: int) -> None:
        active = [time for time in self.table.instants() if time >= self.floor]
        if len(active) <= back or name in self.savepoints:
            raise Refused
        instant = active[-1 - back]
        if instant in self.savepoints.values():
            raise Refused
        assert self.table.savepoint(instant, name).instant == instant
        self.savepoints[name] = instant

    def _do_delete_savepoint(self, name: str) -> None:
        if name not in self.savepoints:
            raise Refused
        self.table.delete_savepoint(name)
        del self.savepoints[name]

    def _do_restore(self, name: str, cascade: bool) -> None:
        if name not in self.savepoints:
            raise Refused
        target = self.savepoints[name]
        if any(time > target for time in self.savepoints.values()) and not cascade:
            before = self.table.storage.walk()
            try:
                self.table.restore(name)
            except (RestoreError, SavepointError):
                assert self.table.storage.walk() == before, "a refused restore changed something"
                return
            raise AssertionError("a restore went over a later savepoint")
        assert self.table.restore(name, cascade=cascade).restored_to == target
        self._gone_back(target)
        # Where only a savepointed commit is left of an archived history, an empty one keeps the archived ones committed.
        added = [time for time in self.table.instants() if time not in self.model.snapshots]
        assert len(added) <= 1, f"a restore made the commits {added}"
        for time in added:
            self.model.compact(time)

    def _do_clean(self, retain: int) -> None:
        result = self.table.clean(retain)
        self.floor = max(self.floor, result.earliest_retained or "")

    def _do_archive(self, least: int, most: int) -> None:
        if self.make.version != 6:
            raise Refused
        self.table.archive(least, most)

    def _do_serve_metadata(self) -> None:
        """Compaction, clean and archiving, as far as they are due."""
        options = ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": 3, "hoodie.keep.min.commits": 3, **_KEPT})
        run_due(self.table.state, options, self.table.runner, lock_timeout_ms=5000)

    def _do_build_metadata(self) -> None:
        try:
            self.make.build_metadata(self.table.storage)
        except CommitConflictError:
            raise Refused from None

    # comparing

    def check(self, chance: random.Random, *, every: bool) -> None:
        """The snapshot, time travel to all instants that are kept (or to a random one), and changes between them."""
        state = self.table.state
        self._compare(state, self.model.snapshot(), "now")
        if self.make.indexed and check_metadata(self.table.storage):
            self._check_filters(state, chance)
        active = self.table.instants(state)
        unknown = sorted(set(active) - set(self.model.snapshots))
        assert not unknown, f"unknown instants: {unknown}"
        assert not active or max(active) == self.newest, f"{self.newest} is gone, the newest is {max(active)}"
        chosen = active if every else chance.sample(active[:-1], min(1, len(active[:-1])))
        readable = [time for time in chosen if self._compare_as_of(state, time)]
        if self.make.payload == "partial" and self.make.table_type == "mor":
            return  # of a partial update in a log an incremental query shows what the update brought, as Hudi's does
        pairs = {*pairwise(readable), *zip(readable[:1], active[-1:], strict=False)}
        for begin, end in sorted(pairs):
            self._compare(state, self.model.incremental(begin, end), f"from {begin} to {end}", query="incremental", begin=begin, end=end)

    def _check_filters(self, state: TableState, chance: random.Random) -> None:
        """Filters that the metadata table answers: by key, and by statistics."""
        keys, least = chance.sample(range(KEYS), 3), chance.randrange(6)
        for what, wanted, holds in (
            ("keys", pc.field("id").isin(keys), lambda row: row["id"] in keys),
            ("statistics", pc.field("ts") >= least, lambda row: row["ts"] is not None and row["ts"] >= least),
        ):
            found = self.table.read([COMMIT_TIME, *SCHEMA.names], state=state, filters=wanted).to_pylist()
            expected = [row for row in self.model.snapshot() if holds(row)]
            assert sorted(found, key=_order) == sorted(expected, key=_order), f"by {what} ({keys}, {least}): {found}, expected {expected}"

    def check_everything(self) -> Counter[str]:
        """Every instant that there was, archived ones and savepoints included, in every kind of query; how many were read or refused.

        What retention or a savepoint promises must be read. Else an error that says that it is gone is an answer, other rows never.
        """
        state, counted, times = self.table.state, Counter[str](), ["000", *self.model.snapshots]
        active = set(self.table.instants(state))
        for time in times[1:]:
            promised = time in self.savepoints.values() or (time in active and time >= self.floor)
            ask = partial(self._compare, state, self.model.snapshot(time), f"as of {time}", as_of=time)
            counted[self._asked(promised, ask)] += 1
            counted["optimized " + self._asked(promised, partial(self._check_optimized, state, time))] += 1
            counted["savepoints read"] += time in self.savepoints.values()
        for name, time in self.savepoints.items():
            self._compare(state, self.model.snapshot(time), f"as of {name}", as_of=name)
        if self.make.payload == "partial" and self.make.table_type == "mor":
            return counted
        for begin, end in combinations(times, 2):
            promised = end in self.savepoints.values() or (end in active and end >= self.floor)
            what = f"from {begin} to {end}"
            query = {"query": "incremental", "begin": begin, "end": end}
            ask = partial(self._compare, state, self.model.incremental(begin, end), what, **query)
            counted["range " + self._asked(promised, ask)] += 1
        return counted

    def _asked(self, promised: bool, ask: Callable[[], None]) -> str:
        try:
            ask()
        except InstantCleanedError:
            if promised:
                raise
            return "gone"
        return "read"

    def _check_optimized(self, state: TableState, time: str) -> None:
        """Rows that are in base files: all of a table without logs, and of one with logs no other than were stored at some time before."""
        rows = self.table.read(
            [COMMIT_TIME, *SCHEMA.names], state=state, query="read_optimized", as_of=state.order.moment(time)
        ).to_pylist()
        stored = [row for other in self.model.snapshots if other <= time for row in self.model.snapshot(other)]
        if self.make.table_type == "cow":
            rows.sort(key=_order)
            assert rows == sorted(self.model.snapshot(time), key=_order), f"read-optimized as of {time}: {rows}"
        assert all(row in stored for row in rows), f"read-optimized as of {time}: {[row for row in rows if row not in stored]}"

    def _compare_as_of(self, state: TableState, time: str) -> bool:
        try:
            self._compare(state, self.model.snapshot(time), f"as of {time}", as_of=time)
        except InstantCleanedError:
            may_be_gone = time < self.floor and time not in self.savepoints.values()
            assert may_be_gone, f"the table cannot be read as of {time}"
            return False
        return True

    def _compare(self, state: TableState, expected: list[Row], what: str, **query: str) -> None:
        asked = {key: state.order.moment(value) for key, value in query.items()}
        ours = self.table.read([COMMIT_TIME, *SCHEMA.names], state=state, **asked).to_pylist()
        if "begin" in query and self.make.index == "BUCKET" and self.make.payload == "event_time":
            # Logged without a look at what is stored: what loses there shows where the base file is older than the range, as Hudi's does.
            ours = [row for row in ours if row not in self.model.lost]
        ours.sort(key=_order)
        assert ours == sorted(expected, key=_order), f"{what}:\n  read     {ours}\n  expected {sorted(expected, key=_order)}"


def _order(row: Row) -> tuple[int, str]:
    return row["id"], row["part"]


def replay(make: Make, steps: Sequence[Step]) -> str | None:
    """Do the steps that apply, checking everything after each; what failed, or None."""
    history, chance = History(make), random.Random(0)
    failures = (failure for step in steps if (failure := _failure(history, step, chance)) is not None)
    return next(failures, None) or _failed(history.check_everything)


def _failure(history: History, step: Step, chance: random.Random) -> str | None:
    def act() -> None:
        history.do(step)
        history.check(chance, every=True)

    failure = _failed(act)
    return None if failure is None else f"{step}: {failure}"


def _failed(act: Callable[[], object]) -> str | None:
    try:
        act()
    except Refused:
        return None
    except (AssertionError, LakehouseError, LookupError, ValueError, TypeError, pa.ArrowException) as error:
        return f"{type(error).__name__}: {error}"
    return None


def shrunk(make: Make, steps: Sequence[Step]) -> list[Step]:
    """As few of the steps as still fail."""
    kept = list(steps)
    for step in reversed(steps):
        fewer = [other for other in kept if other is not step]
        if replay(make, fewer) is not None:
            kept = fewer
    return kept
