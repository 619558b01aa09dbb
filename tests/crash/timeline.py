"""The timeline of a table, active and archived, from the names and bytes of its files. Shares nothing with the engine."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow.parquet as pq

from lakehouse_engine.storage.base import Storage, StoredFile
from tests.crash.log_files import blocks
from tests.support.versions import timeline_folder

_ACTIONS = "commit|deltacommit|replacecommit|compaction|logcompaction|clustering|indexing|rollback|clean|restore|savepoint"
_INSTANT = re.compile(rf"(\d{{17}})\.(?:({_ACTIONS})(?:\.(requested|inflight))?|(inflight))")
_LATER_INSTANT = re.compile(rf"(\d{{17}})(?:_(\d{{17}}))?\.(?:({_ACTIONS})(?:\.(requested|inflight))?|(inflight))")
_ARCHIVE = re.compile(r"\.commits_\.archive\.(\d+)_1-0-1")
_OTHERS = re.compile(r"hoodie\.properties(\.backup)?")
WRITES = ("commit", "deltacommit", "replacecommit")
SERVICES = ("compaction", "logcompaction", "clustering", "indexing", "clean")
"""Plans that wait for whoever runs them; everything else that is pending is repaired by the next action."""
_SAME = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

Json = dict[str, Any]


class Violation(AssertionError):
    """An invariant does not hold."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Violation(message)


@dataclass
class Timeline:
    """`completed` and `pending` are action by time; `archived` the completed instants that the archive holds, with their metadata.

    `savepoints` are completed ones by the instant that they keep, `begun` those that never were completed. `contents` are the bytes of
    every file of the active timeline by name, as version 6 has it. `completions` are the completion times of versions 8 and 9.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    completed: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    savepoints: dict[str, Json] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    archived: dict[str, Json] = field(default_factory=dict)
    completions: dict[str, str] = field(default_factory=dict)
    by_completion: bool = False

    def moment(self, time: str) -> str:
        """When an instant shows: versions 8 and 9, when it was completed; a compaction, when it was planned."""
        planned = {f"{time}.compaction.requested", f"{time}.logcompaction.requested"} & self.contents.keys()
        return time if planned else self.completions.get(f"{time}.{self.completed.get(time, '')}", time)

    @property
    def writes(self) -> list[str]:
        """Times of all writes that count, archived ones too. From its plan on a restore takes away what it goes back over."""
        rolled_back = {time for record in self.records("rollback") for time in record["commitsRollback"]}
        kept = [time for time, entry in self.archived.items() if entry["actionType"] in WRITES and time not in rolled_back]
        spans = [(plan["savepointToRestoreTimestamp"], time) for time, plan in self.plans("restore").items() if not self.is_void(time)]
        counts = (time for time in {*self.published(), *kept} if not any(target < time < restore for target, restore in spans))
        return sorted(counts, key=self.moment)

    def published(self) -> set[str]:
        """Times of the completed writes of the active timeline, which every reader takes for committed."""
        return {time for time, action in self.completed.items() if action in WRITES}

    def commit(self, time: str) -> Json:
        if time in self.completed:
            return _commit(f"{time}.{self.completed[time]}", self.contents[f"{time}.{self.completed[time]}"])
        entry = self.archived[time]
        return dict(entry["hoodieReplaceCommitMetadata"] or entry["hoodieCommitMetadata"])

    def records(self, action: str) -> Iterator[Json]:
        """Records of the completed instants of a table service."""
        member = {"rollback": "hoodieRollbackMetadata", "clean": "hoodieCleanMetadata"}.get(action)
        for time, kind in self.completed.items():
            if kind == action:
                yield record_of(f"{time}.{action}", self.contents[f"{time}.{action}"])
        for time, entry in self.archived.items():
            if entry["actionType"] == action and time not in self.completed and member is not None:
                yield entry[member]

    def retained_since(self) -> str:
        """The instant from which on every clean, pending or done, kept what readers need."""
        times = [record["earliestCommitToRetain"] for record in self.records("clean")]
        times += [(plan["earliestInstantToRetain"] or {}).get("timestamp", "") for plan in self.plans("clean").values()]
        return max(times, default="")

    def is_going(self, time: str) -> bool:
        """Whether a restore that is under way takes that instant off the timeline, so that some of its states may be gone."""
        under_way = {restore: plan for restore, plan in self.plans("restore").items() if f"{restore}.restore" not in self.contents}
        return any(plan["savepointToRestoreTimestamp"] < time < restore for restore, plan in under_way.items())

    def is_void(self, time: str) -> bool:
        """Whether the plan of a restore came to an object store when others had gone on: who comes after one carries it out first."""
        begun = {f"{time}.restore", f"{time}.restore.inflight"} & self.contents.keys()
        return not begun and max([*self.completed, *self.pending], default="") > time

    def plans(self, action: str) -> dict[str, Json]:
        """Plans of an action's instants on the active timeline, pending or not, by time."""
        names = [name for name in self.contents if name.endswith(f".{action}.requested")]
        return {name[:17]: record_of(name, self.contents[name]) for name in names}


def read_timeline(storage: Storage) -> Timeline:
    timeline = Timeline()
    states: dict[tuple[str, bool], set[tuple[str, str]]] = {}
    timeline.by_completion = timeline_folder(storage) != ".hoodie"
    timeline.archived = _history(storage, timeline) if timeline.by_completion else _archived(storage)
    for entry in _state_files(storage, timeline.by_completion):
        match = (_LATER_INSTANT if timeline.by_completion else _INSTANT).fullmatch(entry.name)
        if match is None:
            expect(_OTHERS.fullmatch(entry.name), f"unknown file {entry.path}")
            continue
        time, *completion, action, state, plain = match.groups()
        name = f"{time}{entry.name[entry.name.index('.') :]}"
        if timeline.by_completion:
            expect((completion[0] is None) is bool(state or plain), f"{entry.path} should have a completion time, or not have one")
            expect(name not in timeline.contents, f"{name} was completed twice")
            if completion[0]:
                timeline.completions[name] = completion[0]
        timeline.contents[name] = storage.read(entry.path)
        states.setdefault((time, action == "savepoint"), set()).add((action or "commit", state or plain or "completed"))
    for name, content in timeline.contents.items():
        _parse(name, content)
    for (time, savepoint), seen in states.items():
        _sort_in(timeline, time, seen, savepoint)
    return timeline


def _state_files(storage: Storage, by_completion: bool) -> list[StoredFile]:
    found = [entry for entry in storage.list(".hoodie") if not entry.is_directory]
    if by_completion:
        stray = [entry.path for entry in found if not _OTHERS.fullmatch(entry.name)]
        expect(not stray, f"unknown files {stray}")
        found = [entry for entry in storage.list(".hoodie/timeline") if not entry.is_directory]
    return found


def _commit(name: str, content: bytes) -> Json:
    return record_of(name, content) if content.startswith(b"Obj\x01") else dict(json.loads(content))


def _sort_in(timeline: Timeline, time: str, seen: set[tuple[str, str]], savepoint: bool) -> None:
    done = [action for action, state in seen if state == "completed"]
    if savepoint:
        if done:
            timeline.savepoints[time] = record_of("savepoint", timeline.contents[f"{time}.savepoint"])
        else:
            timeline.begun.add(time)
        return
    expect(len({_SAME.get(action, action) for action, _ in seen}) == 1, f"two actions at {time}: {seen}")
    archived, going = timeline.archived.get(time), timeline.is_going(time)
    if done:
        expect(len(seen) == 3 or archived or going, f"{time} is completed without its other states: {seen}")
        timeline.completed[time] = done[0]
    else:
        expect(archived is None or going, f"{time} is archived as completed and passes for a pending instant: {seen}")
        timeline.pending[time] = "clustering" if _is_clustering(timeline, time) else next(iter(seen))[0]


def _is_clustering(timeline: Timeline, time: str) -> bool:
    """Whether a replace commit has the plan of a clustering, as version 6 tells one."""
    name = f"{time}.replacecommit.requested"
    return name in timeline.contents and record_of(name, timeline.contents[name])["clusteringPlan"] is not None


def record_of(name: str, content: bytes) -> Json:
    records = list(fastavro.reader(io.BytesIO(content)))
    expect(len(records) == 1, f"{name} holds {len(records)} records")
    return dict(records[0])  # type: ignore[arg-type]


_NEVER_EMPTY = (
    *("rollback", "clean", "restore", "savepoint"),
    *("compaction.requested", "logcompaction.requested", "clustering.requested"),
)


def _parse(name: str, content: bytes) -> None:
    """Raise `Violation` for a file that is no whole one of its kind."""
    kind = name[18:]
    try:
        if kind in WRITES:
            expect(isinstance(_commit(name, content).get("partitionToWriteStats"), dict), f"{name} is no commit")
        elif kind in ("inflight", "deltacommit.inflight", "replacecommit.inflight"):
            expect(not content or isinstance(_commit(name, content), dict), f"{name} is no plan of a write")
        elif content or kind in _NEVER_EMPTY:
            record_of(name, content)
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"{name} of {len(content)} bytes cannot be read: {error!r}") from error


_MEMBERS = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
}


def _history(storage: Storage, timeline: Timeline) -> dict[str, Json]:
    """As `_archived`, of versions 8 and 9; notes when each was completed."""
    names = {entry.name for entry in storage.list(_HISTORY)}
    manifests = [int(name.removeprefix("manifest_")) for name in names if name.startswith("manifest_")]
    if not manifests:
        return {}
    # A writer deletes `_version_` before it writes the next one: without it the newest manifest counts.
    number = int(storage.read(f"{_HISTORY}/_version_")) if "_version_" in names else max(manifests)
    manifest = json.loads(storage.read(f"{_HISTORY}/manifest_{number}"))
    found: dict[str, Json] = {}
    for listed in manifest["files"]:
        for row in pq.read_table(io.BytesIO(storage.read(f"{_HISTORY}/{listed['fileName']}"))).to_pylist():
            time, action = row["instantTime"], row["action"]
            expect(time not in found, f"{time} is archived twice")
            record = record_of(f"{time}.{action}", row["metadata"]) if action in _MEMBERS else None
            found[time] = {"actionType": action, **dict.fromkeys(_MEMBERS.values()), _MEMBERS.get(action, ""): record}
            # A compaction shows when it was planned.
            planned = row["plan"] is not None and action in ("commit", "deltacommit")
            timeline.completions[f"{time}."] = time if planned else row["completionTime"]
    return dict(sorted(found.items()))


_HISTORY = ".hoodie/timeline/history"


def _archived(storage: Storage) -> dict[str, Json]:
    """Completed instants of the archived timeline, oldest first; the last entry counts where one was archived twice."""
    found: dict[str, Json] = {}
    files = [(int(match[1]), entry.path) for entry in storage.list(".hoodie/archived") if (match := _ARCHIVE.fullmatch(entry.name))]
    for _, path in sorted(files):
        for block in blocks(storage.read(path)):
            for entry in block.rows():
                if entry["actionState"] == "COMPLETED":
                    found[entry["commitTime"]] = entry
    return dict(sorted(found.items()))
