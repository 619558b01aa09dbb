"""Files that completed writes named. Another base file of a completed instant is a stray: a late task attempt left it, and its rows are in
the named file. It is not part of the table, whichever writer left it. The same holds for a file that reached an object store after its
write had been taken back, once the timeline begins after that.

For active commits the write stats decide, for archived ones the checkpoint of live files, as far as it lists all of them
(`ArchivedFiles.told_to`). If that is unknown, every file of a completed instant counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakehouse_engine.errors import FormatError, InstantNotFoundError
from lakehouse_engine.manifest.archived_files import ArchivedFiles
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_later
from lakehouse_engine.timeline.timeline import Timeline


@dataclass(slots=True)
class NamedFiles:
    """`names` returns the file names of an active commit, None if it does not list all of them (`manifest.written.named_files`)."""

    timeline: Timeline
    names: Callable[[Instant], frozenset[str] | None]
    archived: Callable[[], ArchivedFiles]
    _active: Mapping[str, Instant] | None = None
    _known: dict[str, frozenset[str] | None] = field(default_factory=dict)
    _logs: frozenset[str] | None = None

    def has(self, base: BaseFile) -> bool:
        """True if a base file of a completed instant is or was part of the table."""
        if self._active is None:
            self._active = {one.requested_time: one for one in self.timeline.completed().writes()}
        instant = self._active.get(base.instant_time)
        if instant is None:
            return self._is_archived(base)
        names = self._names(instant)
        return names is None or base.name in names

    def has_log(self, log: LogFile) -> bool:
        """True if a completed write named a log file (False if unknown)."""
        if self._logs is None:
            known = (self._names(one) for one in self.timeline.completed().writes())
            self._logs = frozenset().union(*(names for names in known if names is not None))
        if log.name in self._logs:
            return True
        live = self.archived().live.of(FileGroupId(log.partition_path, log.file_id))
        return live is not None and any(file.path == log.path for file in live.logs)

    def _names(self, instant: Instant) -> frozenset[str] | None:
        if instant.requested_time not in self._known:
            try:
                found = self.names(instant)
            except (FormatError, InstantNotFoundError):
                found = None  # reading a damaged commit reports the damage
            self._known[instant.requested_time] = found
        return self._known[instant.requested_time]

    def _is_archived(self, base: BaseFile) -> bool:
        archived = self.archived()
        if archived.is_known and archived.boundary and is_later(base.instant_time, archived.boundary):
            # Older than the active timeline and newer than everything archived: its write was taken back, and the file arrived later.
            return False
        if is_later(base.instant_time, archived.told_to):
            return True
        live = archived.live.of(FileGroupId(base.partition_path, base.file_id))
        if live is None or live.base is None:
            return False
        # The checkpoint does not know a group's older versions; only savepoints need them, and they name their files.
        return is_later(live.base.instant_time, base.instant_time) or base.path == live.base.path
