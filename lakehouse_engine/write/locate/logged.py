"""What a write knows about existing logs: from the commits that wrote them, and by reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakehouse_engine.commit.concurrency.pending import compacted_logs
from lakehouse_engine.compat import cached_property
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.file_names import has_bucket, is_log_file_name
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.logged import NOT_TOLD, LoggedSlice, LogPromise, ToldLogs
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.context import WriteContext


class LogFacts(Protocol):
    """What commits say about a table's logs."""

    @property
    def promises(self) -> Mapping[FileGroupId, Sequence[LogPromise]]: ...

    @property
    def told(self) -> ToldLogs: ...

    @property
    def changes(self) -> Mapping[str, tuple[int, int]]:
        """Path of a log -> number of records that commits inserted and deleted there."""
        ...

    @property
    def compacted(self) -> Mapping[FileGroupId, frozenset[str]]:
        """As `commit.concurrency.pending.compacted_logs`."""
        ...


class _Facts:
    """Those of a state, read on demand."""

    def __init__(self, state: TableState) -> None:
        self._state = state

    @cached_property
    def promises(self) -> Mapping[FileGroupId, Sequence[LogPromise]]:
        return self._state.manifest.promises(None)

    @cached_property
    def told(self) -> ToldLogs:
        return self._state.manifest.told(None)

    @cached_property
    def changes(self) -> Mapping[str, tuple[int, int]]:
        changes: dict[str, tuple[int, int]] = {}
        for instant in self._state.timeline.completed().writes():
            for stat in self._state.commit_metadata(instant).write_stats():
                if stat.path and is_log_file_name(stat.path.rpartition("/")[2]):
                    inserts, deletes = changes.get(stat.path, (0, 0))
                    changes[stat.path] = (inserts + stat.num_inserts, deletes + stat.num_deletes)
        return changes

    @cached_property
    def compacted(self) -> Mapping[FileGroupId, frozenset[str]]:
        return compacted_logs(self._state)


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Those of some slices, to be sent."""

    promises: Mapping[FileGroupId, Sequence[LogPromise]]
    told: ToldLogs
    changes: Mapping[str, tuple[int, int]]
    compacted: Mapping[FileGroupId, frozenset[str]]

    @classmethod
    def of(cls, facts: LogFacts, slices: Sequence[FileSlice]) -> KnownFacts:
        logged = [piece for piece in slices if piece.log_files]
        if not logged:
            return cls({}, NOT_TOLD, {}, {})
        promises = {piece.group: facts.promises[piece.group] for piece in logged if piece.group in facts.promises}
        paths = {log.path for piece in logged for log in piece.log_files}
        compacted = {piece.group: facts.compacted[piece.group] for piece in logged if piece.group in facts.compacted}
        return cls(promises, facts.told, {path: counts for path, counts in facts.changes.items() if path in paths}, compacted)


@dataclass(frozen=True, slots=True)
class SliceLogs:
    """Logs of a table's slices, as one write sees them. `buckets`: the table has the BUCKET index."""

    reader: SliceReader
    buckets: bool
    facts: LogFacts

    @classmethod
    def of(cls, state: TableState, context: WriteContext) -> SliceLogs:
        rules = MergeRules.of(state.config, context.schema)
        reader = SliceReader(state.storage, context.schema, rules, LogScope.of(state.timeline))
        return cls(reader, isinstance(context.index, BucketIndex), _Facts(state))

    def of_slices(self, slices: Sequence[FileSlice]) -> SliceLogs:
        """The same for some slices, to be sent to another process."""
        return SliceLogs(self.reader, self.buckets, KnownFacts.of(self.facts, slices))

    def logged(self, piece: FileSlice) -> LoggedSlice:
        return LoggedSlice(piece, tuple(self.facts.promises.get(piece.group, ())), self.facts.told)

    def planned(self, piece: FileSlice) -> LoggedSlice | None:
        """What a pending compaction will make the base file of, if it merges logs."""
        names = self.facts.compacted.get(piece.group, frozenset())
        logs = tuple(log for log in piece.log_files if log.name in names)
        return replace(self.logged(piece), slice=replace(piece, log_files=logs)) if logs else None

    def may_insert(self, piece: FileSlice) -> bool:
        """True if logs of the slice may have keys that its base file lacks.

        Writers with a bucket index do not know what they insert and count all as updates; file group names show such writers.
        """
        if not piece.log_files or piece.base_file is None or self.buckets or has_bucket(piece.file_id):
            return bool(piece.log_files)
        return self._unknown(piece) or any(self._count(piece, 0))

    def may_delete(self, piece: FileSlice) -> bool:
        """True if logs may delete keys of the slice's base file."""
        return bool(piece.log_files) and (bool(self.reader.rules.marks.column) or self._unknown(piece) or any(self._count(piece, 1)))

    def _count(self, piece: FileSlice, which: int) -> list[int]:
        return [self.facts.changes[log.path][which] for log in piece.log_files]

    def _unknown(self, piece: FileSlice) -> bool:
        """True if there is a log without a commit on the timeline: logs of archived commits may hold anything."""
        return any(log.path not in self.facts.changes for log in piece.log_files)
