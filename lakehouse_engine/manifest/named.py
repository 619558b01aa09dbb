"""Which files completed writes named. Another base file of a completed instant is a stray: an attempt of a task that outlived its commit
left it, and its rows are in the file that is named. It is no part of the table, whoever wrote it. So is one that came to an object store
when its write had been taken back, once the timeline begins after that.

Commits of the active timeline are asked by their write stats, archived ones by the checkpoint of live files, as far as that tells all of
them (`ArchivedFiles.told_to`). Where it cannot be known what was named, every file of a completed instant counts.
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
    """`names` gives the names of the files of an active commit, None where it does not tell all of them (`written.named_files`)."""

    timeline: Timeline
    names: Callable[[Instant], frozenset[str] | None]
    archived: Callable[[], ArchivedFiles]
    _active: Mapping[str, Instant] | None = None
    _known: dict[str, frozenset[str] | None] = field(default_factory=dict)
    _logs: frozenset[str] | None = None

    def has(self, base: BaseFile) -> bool:
        """Whether a base file of a completed instant is part of the table, now or at an earlier moment."""
        if self._active is None:
            self._active = {one.requested_time: one for one in self.timeline.completed().writes()}
        instant = self._active.get(base.instant_time)
        if instant is None:
            return self._is_archived(base)
        names = self._names(instant)
        return names is None or base.name in names

    def has_log(self, log: LogFile) -> bool:
        """Whether a completed write named a log file. (False as well where that is not known.)"""
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
                found = None  # whoever needs what a damaged commit wrote is told so
            self._known[instant.requested_time] = found
        return self._known[instant.requested_time]

    def _is_archived(self, base: BaseFile) -> bool:
        archived = self.archived()
        if archived.is_known and archived.boundary and is_later(base.instant_time, archived.boundary):
            # Older than the active timeline, and newer than whatever was archived: its write was taken back, and the file came after that.
            return False
        if is_later(base.instant_time, archived.told_to):
            return True
        live = archived.live.of(FileGroupId(base.partition_path, base.file_id))
        if live is None or live.base is None:
            return False
        # Of older versions of a group the checkpoint says nothing, and nothing rests on them but savepoints, which name files.
        return is_later(live.base.instant_time, base.instant_time) or base.path == live.base.path
