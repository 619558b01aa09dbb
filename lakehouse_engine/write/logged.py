"""What a write knows of the logs that are there before it: from the commits that wrote them, and by reading them."""

from __future__ import annotations

from lakehouse_engine.compat import cached_property
from lakehouse_engine.format.file_names import is_log_file_name
from lakehouse_engine.index.bucket import BucketIndex, has_bucket
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.completeness import log_promises, told_logs
from lakehouse_engine.read.log_scanner import LoggedSlice, LogPromise, LogScope, ToldLogs
from lakehouse_engine.read.merge_rules import MergeRules
from lakehouse_engine.read.slice_reader import SliceReader
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.context import WriteContext


class SliceLogs:
    """The logs of a table's slices, as one write sees them."""

    def __init__(self, state: TableState, context: WriteContext) -> None:
        self._state = state
        self._buckets = isinstance(context.index, BucketIndex)
        rules = MergeRules.of(state.config, context.schema)
        self.reader = SliceReader(state.storage, context.schema, rules, LogScope.of(state.timeline))

    def logged(self, piece: FileSlice) -> LoggedSlice:
        return LoggedSlice(piece, tuple(self._promises.get(piece.group, ())), self._told)

    def may_insert(self, piece: FileSlice) -> bool:
        """Whether logs of the slice may have keys that its base file has not.

        Writers with a bucket index do not know what they insert, and count all as updates; the names of their file groups tell.
        """
        if not piece.log_files or piece.base_file is None or self._buckets or has_bucket(piece.file_id):
            return bool(piece.log_files)
        return self._unknown(piece) or any(self._count(piece, 0))

    def may_delete(self, piece: FileSlice) -> bool:
        """Whether keys of the slice's base file may be deleted by its logs."""
        return bool(piece.log_files) and (
            bool(self.reader.rules.marks.column) or self._unknown(piece) or any(self._count(piece, 1))
        )

    def _count(self, piece: FileSlice, which: int) -> list[int]:
        return [self._changes[log.path][which] for log in piece.log_files]

    def _unknown(self, piece: FileSlice) -> bool:
        """Whether there is a log that no commit on the timeline tells of: those of archived ones may hold anything."""
        return any(log.path not in self._changes for log in piece.log_files)

    @cached_property
    def _promises(self) -> dict[FileGroupId, list[LogPromise]]:
        return log_promises(self._state, None)

    @cached_property
    def _told(self) -> ToldLogs:
        return told_logs(self._state, None)

    @cached_property
    def _changes(self) -> dict[str, tuple[int, int]]:
        """Path of a log -> how many records commits say that they inserted and deleted there."""
        changes: dict[str, tuple[int, int]] = {}
        for instant in self._state.timeline.completed().writes():
            for stat in self._state.commit_metadata(instant).write_stats():
                if stat.path and is_log_file_name(stat.path.rpartition("/")[2]):
                    inserts, deletes = changes.get(stat.path, (0, 0))
                    changes[stat.path] = (inserts + stat.num_inserts, deletes + stat.num_deletes)
        return changes
