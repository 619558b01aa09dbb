"""What a table must hold after each commit: plain dicts and `for` loops, sharing no code with the engine.

Rows are dicts of user columns. A row's identity is its key, with the partition values where a key is unique in its partition only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

Row = dict[str, Any]
COMMIT_TIME = "_hoodie_commit_time"
DELETED = "_hoodie_is_deleted"


@dataclass
class TableModel:
    """`payload` is "overwrite", "event_time" or "partial". Without `key_fields` every row is its own."""

    key_fields: Sequence[str] = ()
    partition_fields: Sequence[str] = ()
    ordering: str | None = None
    is_global: bool = True
    payload: str = "event_time"
    stored: dict[Any, tuple[str, Row]] = field(default_factory=dict)
    snapshots: dict[str, dict[Any, tuple[str, Row]]] = field(default_factory=dict)
    serial: int = 0
    lost: list[Row] = field(default_factory=list)
    """Rows, with their commit time, that came with an ordering value too low to change anything."""

    # changes, each made by the commit of that instant

    def insert(self, rows: Iterable[Row], instant: str) -> None:
        """Rows whose keys are not looked up; the callers' keys are new."""
        for row in rows:
            identity = self._identity(row)
            assert identity not in self.stored, f"{identity} is stored already: the model knows one row a key"
            self.stored[identity] = (instant, dict(row))
        self._commit(instant)

    def upsert(self, rows: Iterable[Row], instant: str, columns: Sequence[str] | None = None) -> None:
        for row in self._reduced(rows):
            identity = self._identity(row)
            if identity not in self.stored:
                if not row.get(DELETED):
                    self.stored[identity] = (instant, dict(row))
                continue
            merged = self._merged(self.stored[identity][1], row, columns)
            if merged is not None and merged.get(DELETED):
                del self.stored[identity]
            elif merged is not None:
                self.stored[identity] = (instant, merged)
            else:
                self.lost.append({COMMIT_TIME: instant, **row})
        self._commit(instant)

    def delete(self, keys: Iterable[Row], instant: str) -> None:
        for row in keys:
            self.stored.pop(self._identity(row), None)
        self._commit(instant)

    def insert_overwrite(self, rows: Sequence[Row], instant: str) -> None:
        replaced = {self.partition_of(row) for row in rows}
        self._drop(replaced)
        self.insert(rows, instant)

    def insert_overwrite_table(self, rows: Sequence[Row], instant: str) -> None:
        self.stored = {}
        self.insert(rows, instant)

    def delete_partitions(self, partitions: Iterable[tuple[Any, ...]], instant: str) -> None:
        self._drop(set(partitions))
        self._commit(instant)

    # what services do

    def compact(self, instant: str) -> None:
        """A completed compaction changes no row; it may have been planned before later commits."""
        before = [time for time in self.snapshots if time < instant]
        self.snapshots[instant] = dict(self.snapshots[before[-1]]) if before else {}
        self.snapshots = dict(sorted(self.snapshots.items()))

    def go_back(self, instant: str | None) -> None:
        """Take back every commit after `instant` (None: all)."""
        self.snapshots = {time: stored for time, stored in self.snapshots.items() if instant is not None and time <= instant}
        self.stored = dict(self.snapshots[max(self.snapshots)]) if self.snapshots else {}

    # readings

    def snapshot(self, as_of: str | None = None) -> list[Row]:
        """Rows with their commit time."""
        stored = self.stored if as_of is None else self.snapshots[as_of]
        return [{COMMIT_TIME: time, **row} for time, row in stored.values()]

    def incremental(self, begin: str, end: str) -> list[Row]:
        """Rows as of `end` that changed after `begin`."""
        return [row for row in self.snapshot(end) if begin < row[COMMIT_TIME] <= end]

    def ranges(self, *, every: bool = True) -> list[tuple[str, str]]:
        """Pairs of instants: any two, or only neighbours and the outermost."""
        times = ["000", *self.snapshots]
        return list(combinations(times, 2)) if every else [*pairwise(times), (times[0], times[-1])]

    def partition_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.partition_fields)

    # how

    def _commit(self, instant: str) -> None:
        self.snapshots[instant] = dict(self.stored)

    def _identity(self, row: Mapping[str, Any]) -> Any:
        if not self.key_fields:
            self.serial += 1
            return self.serial
        key = tuple(row[name] for name in self.key_fields)
        return key if self.is_global else (key, self.partition_of(row))

    def _drop(self, partitions: set[tuple[Any, ...]]) -> None:
        self.stored = {key: pair for key, pair in self.stored.items() if self.partition_of(pair[1]) not in partitions}

    def _reduced(self, rows: Iterable[Row]) -> list[Row]:
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(self._identity(row), []).append(row)
        return [self._latest(group) for group in groups.values()]

    def _latest(self, group: list[Row]) -> Row:
        ordered = sorted(group, key=self._rank)
        if self.payload != "partial":
            return ordered[-1]
        merged = dict(ordered[-1])
        for name in merged:
            merged[name] = next((row[name] for row in reversed(ordered) if row[name] is not None), None)
        return merged

    def _rank(self, row: Row) -> tuple[bool, Any]:
        value = row.get(self.ordering) if self.ordering else None
        return (value is not None, value if value is not None else 0)

    def _merged(self, old: Row, new: Row, columns: Sequence[str] | None) -> Row | None:
        """The row to store; None where the stored one stays untouched."""
        wins = self.payload == "overwrite" or self._rank(new) >= self._rank(old)
        if new.get(DELETED):
            return new if wins or self.payload == "partial" else None
        if self.payload == "partial":
            first, second = (new, old) if wins else (old, new)
            new = {name: first[name] if first[name] is not None else second[name] for name in old}
        elif not wins:
            return None
        changed = None if columns is None else {*columns, self.ordering}  # the ordering value moves with every row that wins
        return new if changed is None else {name: new[name] if name in changed else old[name] for name in old}
