"""What must hold of a table after a crash, found by code that shares nothing with the engine but the storage's bytes.

The timeline is parsed from file names, live files follow from the write stats of commits alone (not from listings), and rows are read
with plain pyarrow and fastavro. Merging here is by log order: the tables that are checked bring rising ordering values.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.storage.base import Storage
from tests.crash.log_files import COMMAND, DELETE, Block, blocks, whole_blocks
from tests.crash.timeline import SERVICES, Timeline, Violation, expect, read_timeline

__all__ = ["Found", "Rows", "Violation", "check_kept", "check_recovered", "check_rows", "expect", "look"]

BASE_FILE = re.compile(r"([0-9a-f-]{36}-\d+)_\d+-\d+-\d+_(\d{17})\.parquet")
LOG_FILE = re.compile(r"\.([0-9a-f-]{36}-\d+)_(\d{17})\.log\.(\d+)_(\d+-\d+-\d+)")

Rows = Mapping[str, tuple[Any, ...]]
Group = tuple[str, str]


@dataclass(frozen=True, order=True)
class Log:
    """`place` is what decides on its slice and its order: what it has in its name, or when the write of that time was completed."""

    place: str
    version: int
    token: str
    path: str
    size: int = field(compare=False)
    named: str = field(compare=False)

    @classmethod
    def of(cls, timeline: Timeline, path: str, size: int = -1) -> Log:
        match = LOG_FILE.fullmatch(path.rpartition("/")[2])
        expect(match, f"{path} is no log file")
        assert match is not None
        return cls(timeline.moment(match[2]) if timeline.by_completion else match[2], int(match[3]), match[4], path, size, match[2])


@dataclass
class Files:
    """What commits wrote of one file group: base files by instant, (path, size), and logs."""

    bases: dict[str, tuple[str, int]] = field(default_factory=dict)
    logs: list[Log] = field(default_factory=list)

    def slices(self) -> set[str]:
        return {*self.bases, *(log.named for log in self.logs)}

    def live(self) -> tuple[tuple[str, int] | None, list[Log]]:
        """The newest base file and the logs on top of it, those of a pending compaction included."""
        newest = max(self.bases, default="")
        return self.bases.get(newest), sorted(log for log in self.logs if log.place >= newest)


@dataclass
class Found:
    """A table as the checker sees it. `groups` are those that no commit replaced, `named` are all files that commits name.

    `present` are the data files that are there; `pinned` those that savepoints keep, with a hash of their content.
    """

    timeline: Timeline
    groups: dict[Group, Files] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    present: dict[str, int] = field(default_factory=dict)
    pinned: dict[str, str] = field(default_factory=dict)
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def is_merge_on_read(self) -> bool:
        return any("deltacommit" in name for name in self.timeline.contents)

    @property
    def writes(self) -> list[str]:
        return self.timeline.writes

    @property
    def completed(self) -> dict[str, str]:
        return self.timeline.completed

    @property
    def pending(self) -> dict[str, str]:
        return self.timeline.pending


def look(storage: Storage, columns: tuple[str, ...], cleaned: set[str] | None = None) -> Found:
    """Read the table; raises `Violation` for what no crash may leave behind, whether or not anything has recovered yet.

    `cleaned` are files that cleans planned to delete when the table was looked at before; those of this look are added. The plan of a clean
    that died may be gone since: a restore to before it takes it off the timeline, whatever it had deleted until then.
    """
    found = Found(read_timeline(storage))
    for time in found.writes:
        _apply(found.timeline.commit(time), time, found)
    found.present = {entry.path: entry.size for entry in storage.walk() if _is_data(entry.path)}
    known = set() if cleaned is None else cleaned
    known |= _cleaned(found.timeline)
    _check_files(found, known)
    _check_savepoints(storage, found)
    names, is_there = _names_metadata_table(storage), storage.head(".hoodie/metadata/.hoodie/hoodie.properties") is not None
    expect(is_there or not names, "the properties name a metadata table that is gone")
    found.rows = read_rows(storage, found, [files.live() for files in found.groups.values()], columns)
    return found


def _names_metadata_table(storage: Storage) -> bool:
    properties = storage.read(".hoodie/hoodie.properties")
    return re.search(rb"^hoodie\.table\.metadata\.partitions=.", properties, re.MULTILINE) is not None


def _is_data(path: str) -> bool:
    return not path.startswith(".hoodie/") and not path.rpartition("/")[2].startswith(".hoodie_partition")


def _apply(commit: dict[str, Any], time: str, found: Found) -> None:
    for partition, file_ids in (commit.get("partitionToReplaceFileIds") or {}).items():
        for file_id in file_ids:
            expect(found.groups.pop((partition, file_id), None), f"{time} replaces {partition}/{file_id}, which is not there")
    for partition, stats in commit["partitionToWriteStats"].items():
        for stat in stats:
            _add(found, found.groups.setdefault((partition, stat["fileId"]), Files()), stat, time)
            found.named[stat["path"]] = stat["fileSizeInBytes"]


def stats_of(commit: dict[str, Any]) -> list[dict[str, Any]]:
    return [stat for stats in commit["partitionToWriteStats"].values() for stat in stats]


def _add(found: Found, files: Files, stat: dict[str, Any], time: str) -> None:
    path, size, previous = stat["path"], stat["fileSizeInBytes"], stat["prevCommit"]
    match = BASE_FILE.fullmatch(path.rpartition("/")[2])
    if match is None:
        files.logs.append(Log.of(found.timeline, path, size))
        expect(not found.timeline.by_completion or files.logs[-1].named == time, f"{time} names {path}, which is not its own")
        return
    expect(match[2] == time, f"{time} names {path}, which is not its own")
    # Names of logs of later versions do not tell a slice: without a base file the first log began it.
    begun = files.slices() or {log.named for log in files.logs}
    expect(previous in begun if begun else previous == "null", f"{path} follows {previous}, not {begun}")
    files.bases[time] = (path, size)


def _check_files(found: Found, cleaned: set[str]) -> None:
    """Every live file is there in its recorded size; others are gone only where a clean says so."""
    live = {path: size for files in found.groups.values() for path, size in _live_files(files)}
    for path, size in live.items():
        expect(path in found.present, f"{path} of a live slice is not there")
        expect(found.present[path] == size, f"{path} has {found.present[path]} bytes, its commit says {size}")
    for time in found.timeline.published() - set(found.writes):
        # Other readers do not know that a restore has begun.
        found.named.update({stat["path"]: stat["fileSizeInBytes"] for stat in stats_of(found.timeline.commit(time))})
    for path, size in found.named.items():
        if path in found.present:
            expect(found.present[path] == size, f"{path} has {found.present[path]} bytes, its commit says {size}")
        else:
            expect(path in cleaned, f"{path} is gone, and no clean took it")


def _live_files(files: Files) -> Iterable[tuple[str, int]]:
    base, logs = files.live()
    return [*([base] if base else []), *((log.path, log.size) for log in logs)]


def _cleaned(timeline: Timeline) -> set[str]:
    """Files that cleans planned to delete."""
    found: set[str] = set()
    for plan in timeline.plans("clean").values():
        for partition, infos in (plan["filePathsToBeDeletedPerPartition"] or {}).items():
            found.update(_join(partition, info["filePath"].rpartition("/")[2]) for info in infos)
    for record in timeline.records("clean"):
        for partition, part in record["partitionMetadata"].items():
            found.update(_join(partition, name.rpartition("/")[2]) for name in part["deletePathPatterns"])
    return found


def _join(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def pins(timeline: Timeline, time: str) -> list[str]:
    """Paths of the files that the savepoint of `time` keeps."""
    parts = timeline.savepoints[time]["partitionMetadata"]
    return [_join(partition, name) for partition, part in parts.items() for name in part["savepointDataFile"]]


def _check_savepoints(storage: Storage, found: Found) -> None:
    going_back = "restore" in found.pending.values()
    for time in found.timeline.savepoints:
        if going_back and time not in found.writes:
            continue
        expect(time in found.writes, f"the savepoint {time} keeps an instant that is gone")
        for path in pins(found.timeline, time):
            expect(path in found.present, f"{path} is gone, which the savepoint {time} keeps")
            found.pinned[path] = hashlib.sha256(storage.read(path)).hexdigest()


def saved_rows(storage: Storage, found: Found, time: str, columns: tuple[str, ...]) -> Rows:
    """What the files that a savepoint keeps hold as of its instant."""
    groups: dict[Group, Files] = {}
    for path in pins(found.timeline, time):
        partition, _, name = path.rpartition("/")
        base = BASE_FILE.fullmatch(name)
        log = LOG_FILE.fullmatch(name)
        match = base or log
        expect(match, f"the savepoint {time} keeps {path}, which is no data file")
        assert match is not None
        files = groups.setdefault((partition, match[1]), Files())
        if base:
            files.bases[base[2]] = (path, 0)
        else:
            files.logs.append(Log.of(found.timeline, path))
    return read_rows(storage, found, [files.live() for files in groups.values()], columns, until=time)


def read_rows(
    storage: Storage,
    found: Found,
    slices: Iterable[tuple[tuple[str, int] | None, list[Log]]],
    columns: tuple[str, ...],
    until: str = "9",
) -> dict[str, tuple[Any, ...]]:
    """Rows by record key; every one once, and stamped by a completed commit."""
    keys: Counter[str] = Counter()
    rows: dict[str, tuple[Any, ...]] = {}
    moment = found.timeline.moment
    completed = {time for time in found.writes if moment(time) <= moment(until)}
    for base, logs in slices:
        for row in _merged(storage, found, base, logs, completed):
            keys[row["_hoodie_record_key"]] += 1
            expect(row["_hoodie_commit_time"] in completed, f"a row has the commit time {row['_hoodie_commit_time']}: {row}")
            rows[row["_hoodie_record_key"]] = tuple(row[name] for name in columns)
    twice = [key for key, count in keys.items() if count > 1]
    expect(not twice, f"keys stored twice: {twice}")
    return rows


def _merged(storage: Storage, found: Found, base: tuple[str, int] | None, logs: list[Log], completed: set[str]) -> Iterable[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    if base is not None:
        name = base[0].rpartition("/")[2]
        for row in pq.ParquetFile(pa.BufferReader(storage.read(base[0]))).read(use_threads=False).to_pylist():
            expect(row["_hoodie_record_key"] not in rows, f"{row['_hoodie_record_key']} is twice in {name}")
            expect(row["_hoodie_file_name"] == name, f"a row of {name} names {row['_hoodie_file_name']}")
            rows[row["_hoodie_record_key"]] = row
    for block in _counting(storage, found, logs, completed):
        if block.type == DELETE:
            for key in block.deleted():
                rows.pop(key, None)
        else:
            for row in block.rows():
                rows[row["_hoodie_record_key"]] = row
    return rows.values()


def _counting(storage: Storage, found: Found, logs: list[Log], completed: set[str]) -> list[Block]:
    """Blocks of completed writes in order; what a log compaction merged counts where it stands, and once."""
    read = [block for log in logs for block in blocks(storage.read(log.path))]
    chosen = [block for block in read if block.type != COMMAND and block.instant in completed]
    merged = set().union(*(block.compacted for block in chosen)) if chosen else set()
    return [block for block in chosen if block.instant not in merged]


# after a recovery


def check_recovered(storage: Storage, found: Found, *, services: Iterable[str] = SERVICES, late: Iterable[str] = ()) -> None:
    """After an action has gone through: nothing is pending but plans of `services`, and nothing is left over.

    `late` are data files that came to an object store when their write had been taken back.
    """
    waiting = set(services)
    stuck = {time: action for time, action in found.pending.items() if action not in waiting}
    expect(not stuck, f"still pending: {stuck}")
    left = [entry.path for entry in storage.walk(".hoodie/.temp")]
    under_way = {f".hoodie/.temp/{time}{end}" for time in found.pending for end in ("/", ".open", ".completes")}
    expect(all(path.startswith(tuple(under_way)) for path in left) if under_way else not left, f"left in .temp: {left}")
    check_no_orphans(storage, found, late)
    is_named, is_whole = _names_metadata_table(storage), any(one.path.endswith(".deltacommit") for one in storage.walk(".hoodie/metadata"))
    expect(is_named or storage.head(".hoodie/metadata") is None, "the metadata table is stale")
    expect(is_whole or not is_named, "the metadata table is an empty one")


def check_no_orphans(storage: Storage, found: Found, late: Iterable[str] = ()) -> None:
    """Every data file is one that a commit names, or a log of a slice that is there whose blocks were all taken back."""
    slices = {(_group(path), _base_of(path)) for path in found.named if path in found.present}
    for path in found.present.keys() - found.named.keys() - set(late):
        if any(path.endswith(f"_{time}.parquet") for time in found.pending):
            continue
        log = LOG_FILE.fullmatch(path.rpartition("/")[2])
        if found.timeline.by_completion:
            expect(log and log[2] in found.pending, f"an orphan: {path}")
            continue
        expect(log and (_group(path), _base_of(path)) in slices, f"an orphan: {path}")
        live = [block.instant for block in whole_blocks(storage.read(path)) if block.type != COMMAND and block.instant in found.writes]
        expect(not live, f"{path} has blocks of {live}, and no commit names it")


def _group(path: str) -> Group:
    partition, _, name = path.rpartition("/")
    match = BASE_FILE.fullmatch(name) or LOG_FILE.fullmatch(name)
    expect(match, f"{path} is no data file")
    assert match is not None
    return partition, match[1]


def _base_of(path: str) -> str:
    name = path.rpartition("/")[2]
    match = BASE_FILE.fullmatch(name) or LOG_FILE.fullmatch(name)
    return match[2] if match else ""


def check_rows(found: Found, *allowed: Rows) -> None:
    expect(any(found.rows == dict(rows) for rows in allowed), f"rows are {found.rows}, allowed are {[dict(rows) for rows in allowed]}")


def check_kept(before: Found, after: Found, *, gone: Iterable[str] = (), released: Iterable[str] = ()) -> None:
    """Completed instants of before are there, unchanged or archived, and all newer ones are later; so are savepoints and their files.

    `gone` are instants, and `released` savepoints, that the action takes away.
    """
    removed, free, archived = set(gone), set(released), set(after.timeline.archived)
    for time, action in before.completed.items():
        name = f"{time}.{action}"
        if time not in removed and not (time in archived and name not in after.timeline.contents):
            expect(after.timeline.contents.get(name) == before.timeline.contents[name], f"{name} changed or vanished")
            expect(after.timeline.completions.get(name) == before.timeline.completions.get(name), f"{name} was completed again")
    lost = set(before.timeline.archived) - archived - removed
    expect(not lost, f"instants {sorted(lost)} are gone from the archive")
    last = max(before.completed, default="")
    new = set(after.completed) - set(before.completed) - set(before.pending) - set(before.timeline.archived)
    expect(all(time > last for time in new), f"instants {sorted(new)} are not all after {last}")
    for time in set(before.timeline.savepoints) - free:
        expect(time in after.timeline.savepoints, f"the savepoint {time} is gone")
        for path in pins(before.timeline, time):
            expect(after.pinned[path] == before.pinned[path], f"{path} changed, which the savepoint {time} keeps")
