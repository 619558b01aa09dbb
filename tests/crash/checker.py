"""What must hold of a table after a crash, found by code that shares nothing with the engine but the storage's bytes.

The timeline is parsed from file names, live files follow from the write stats of commits alone (not from listings), and rows are
read with plain pyarrow.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.storage.base import Storage

INSTANT = re.compile(r"(\d{17})\.(?:(commit|replacecommit|rollback)(?:\.(requested|inflight))?|(inflight))")
DATA_FILE = re.compile(r"[0-9a-f-]{36}-0_\d+-\d+-\d+_(\d{17})\.parquet")
NOT_INSTANTS = re.compile(r"hoodie\.properties(\.backup)?")

Rows = Mapping[str, tuple[Any, ...]]


class Violation(AssertionError):
    """An invariant does not hold."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Violation(message)


@dataclass
class Found:
    """A table as the checker sees it."""

    completed: dict[str, str] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=dict)
    live: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def writes(self) -> list[str]:
        return sorted(time for time, action in self.completed.items() if action != "rollback")


def look(storage: Storage, columns: tuple[str, ...]) -> Found:
    """Read the table; raises `Violation` for what no crash may leave behind, whether or not anything has recovered yet."""
    found = Found()
    _timeline(storage, found)
    for time in found.writes:
        _apply(json.loads(found.contents[f"{time}.{found.completed[time]}"]), found)
    _read(storage, found, columns)
    return found


def check_recovered(storage: Storage, found: Found) -> None:
    """After a write has gone through: nothing is pending and nothing is left over."""
    expect(not found.pending, f"still pending: {sorted(found.pending)}")
    left = [entry.path for entry in storage.walk(".hoodie/.temp")]
    expect(not left, f"left in .temp: {left}")
    data = {entry.path for entry in storage.walk() if not entry.path.startswith(".hoodie/") and ".hoodie_partition" not in entry.path}
    expect(data <= found.named, f"orphans: {sorted(data - found.named)}")
    expect(storage.head(".hoodie/metadata") is None, "the metadata table is stale")
    properties = storage.read(".hoodie/hoodie.properties").decode()
    expect("hoodie.table.metadata.partitions=files" not in properties, "the properties name a metadata table that is gone")


def check_rows(found: Found, *allowed: Rows) -> None:
    expect(any(found.rows == dict(rows) for rows in allowed), f"rows are {found.rows}, allowed are {allowed}")


def check_kept(before: Found, after: Found) -> None:
    """Completed instants of before are there, unchanged, and all newer ones are later."""
    for name, content in before.contents.items():
        if name.removeprefix(name[:17] + ".") in ("commit", "replacecommit", "rollback"):
            expect(after.contents.get(name) == content, f"{name} changed or vanished")
    last = max(before.completed, default="")
    new = set(after.completed) - set(before.completed)
    expect(all(time > last for time in new), f"instants {sorted(new)} are not all after {last}")


def _timeline(storage: Storage, found: Found) -> None:
    states: dict[str, set[tuple[str, str]]] = {}
    for entry in storage.list(".hoodie"):
        if entry.is_directory:
            continue
        match = INSTANT.fullmatch(entry.name)
        if match is None:
            expect(NOT_INSTANTS.fullmatch(entry.name), f"unknown file {entry.path}")
            continue
        time, action, state, plain = match.groups()
        found.contents[entry.name] = storage.read(entry.path)
        states.setdefault(time, set()).add((action or "commit", state or plain or "completed"))
    for time, seen in states.items():
        expect(len({action for action, _ in seen}) == 1, f"two actions at {time}: {seen}")
        action = next(iter(seen))[0]
        if (action, "completed") in seen:
            expect(len(seen) == 3, f"{time} is completed without its other states: {seen}")
            found.completed[time] = action
        else:
            found.pending.add(time)
    for name, content in found.contents.items():
        _parse(name, content)


def _parse(name: str, content: bytes) -> None:
    kind = name[18:]
    if kind in ("commit", "replacecommit"):
        expect(isinstance(json.loads(content).get("partitionToWriteStats"), dict), f"{name} is no commit")
    elif kind in ("rollback", "rollback.requested"):
        expect(len(list(fastavro.reader(io.BytesIO(content)))) == 1, f"{name} is no record")


def _apply(commit: dict[str, Any], found: Found) -> None:
    for partition, file_ids in (commit.get("partitionToReplaceFileIds") or {}).items():
        for file_id in file_ids:
            expect(found.live.pop((partition, file_id), None), f"a commit replaces {partition}/{file_id}, which is not there")
    for partition, stats in commit["partitionToWriteStats"].items():
        for stat in stats:
            group, path = (partition, stat["fileId"]), stat["path"]
            previous = found.live.get(group)
            came_from = previous and DATA_FILE.fullmatch(previous[0].rpartition("/")[2])
            expect(stat["prevCommit"] == (came_from[1] if came_from else "null"), f"{path} does not follow {previous}")
            found.live[group] = (path, stat["fileSizeInBytes"])
            found.named.add(path)


def _read(storage: Storage, found: Found, columns: tuple[str, ...]) -> None:
    """Rows by record key; every one once, and stamped by a completed commit."""
    keys: Counter[str] = Counter()
    for path, size in found.live.values():
        entry = storage.head(path)
        expect(entry is not None, f"{path} of a live slice is not there")
        assert entry is not None
        expect(entry.size == size, f"{path} has {entry.size} bytes, its commit says {size}")
        table = pq.ParquetFile(pa.BufferReader(storage.read(path))).read(use_threads=False)
        for row in table.to_pylist():
            keys[row["_hoodie_record_key"]] += 1
            expect(row["_hoodie_commit_time"] in found.writes, f"a row of {path} has the commit time {row['_hoodie_commit_time']}")
            expect(row["_hoodie_file_name"] == path.rpartition("/")[2], f"a row of {path} names {row['_hoodie_file_name']}")
            found.rows[row["_hoodie_record_key"]] = tuple(row[name] for name in columns)
    twice = [key for key, count in keys.items() if count > 1]
    expect(not twice, f"keys stored twice: {twice}")
