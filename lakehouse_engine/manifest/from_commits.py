"""Manifest from a table's commits: required files are those that writes recorded.

The write stats of active and archived commits record them: a group's last write up to an instant counts. If archived writes are unknown
(`Commits`, `ArchivedFiles`), `prevCommit` of the first later write says that there was an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakehouse_engine.compat import cached_property
from lakehouse_engine.errors import CorruptInstantError, MetadataError
from lakehouse_engine.manifest.archived_files import ArchivedFiles
from lakehouse_engine.manifest.commits import Archived, Commits
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.manifest.named import NamedFiles
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord, WrittenFile, live_partitions
from lakehouse_engine.model.logged import LogPromise, ToldLogs
from lakehouse_engine.model.order import Order, is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.timeline.timeline import Timeline

_Write = tuple[Instant, HoodieCommitMetadata]
NO_COMMIT = (None, "", "null")
"""`prevCommit` of a group's first write."""


# No slots, so that derived values can be cached on the instance.
@dataclass(frozen=True)
class FromCommits:
    """A `Manifest` from the commits on `timeline` and from what archived ones left."""

    timeline: Timeline
    commits: Commits
    archived: Archived

    @property
    def order(self) -> Order:
        return self.timeline.order

    @cached_property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        """Every group that a completed replace commit of the active timeline names, with the time of the first."""
        replaced: dict[FileGroupId, str] = {}
        for instant in self.timeline:
            if instant.is_completed and instant.action is Action.REPLACE_COMMIT:
                for group in self.commits.of(instant).replaced_groups():
                    replaced.setdefault(group, instant.requested_time)
        return replaced

    def partitions(self) -> Sequence[str] | None:
        return self._partitions

    @cached_property
    def _partitions(self) -> tuple[str, ...] | None:
        archived = self.archived.files()
        if not archived.is_known:
            return None
        writes = self.timeline.completed().writes()
        with suppress(MetadataError):
            # Another writer's commits may not say what they wrote.
            if all(self.commits.named(one) is not None for one in writes):
                return tuple(sorted(live_partitions(archived.live, [self.commits.record(one) for one in writes]))) or None
        return None

    def written_partitions(self) -> set[str]:
        """Partitions with files of writes. A torn commit contributes none: reading its files raises an error."""
        named = self.archived.files().live.partitions()
        for instant in self.timeline.completed().writes():
            with suppress(CorruptInstantError):
                named.update(path for path, stats in self.commits.of(instant).partition_to_write_stats.items() if stats)
        return named

    def named_partitions(self, as_of: str | None) -> set[str]:
        found = self.archived_as_of(as_of).live.partitions()
        for _, metadata in self._proven_writes():
            found.update(metadata.partition_to_write_stats, (group.partition_path for group in metadata.replaced_groups()))
        return found.union(*(write.by_partition for write in self.writes(as_of)))

    def live(self, as_of: str | None, partitions: frozenset[str] | None) -> dict[FileGroupId, ExpectedFile]:
        archived, order = self.archived_as_of(as_of), self.order
        expected = {
            group: ExpectedFile(group, live.base.instant_time, live.base.path)
            for group, live in archived.live.within(partitions)
            if live.base is not None
        }
        born: set[FileGroupId] = set()
        pending = self.timeline.pending_compactions
        for instant, metadata in self._proven_writes():
            if as_of is None or order.is_visible(instant.requested_time, as_of):
                if is_later(instant.requested_time, archived.boundary):
                    expected.update((file.group, file) for file in self._written(instant, partitions))
                continue
            for group, previous in _previous(metadata):
                if previous in pending or _is_outside(group, partitions):
                    continue  # the future slice says nothing about the one before it
                if previous in NO_COMMIT or not order.is_visible(str(previous), as_of):
                    born.add(group)
                elif group not in expected and group not in born:
                    expected[group] = ExpectedFile(group, str(previous), f"the base file of {group.file_id} written by {previous}")
            for group in metadata.replaced_groups():
                if group not in expected and group not in born and not _is_outside(group, partitions):
                    expected[group] = ExpectedFile(group, "", f"the base file of {group.file_id}, replaced by {instant.requested_time},")
        return expected

    def bases(self, as_of: str | None, partitions: frozenset[str] | None) -> Iterator[WrittenFile]:
        for _, live in self.archived_as_of(as_of).live.within(partitions):
            if live.base is not None:
                yield live.base
        for write in self.writes(as_of):
            yield from (file for _, file in write.files_in(partitions) if not file.is_log)

    def promises(self, as_of: str | None, partitions: frozenset[str] | None = None) -> dict[FileGroupId, list[LogPromise]]:
        """What completed commits up to `as_of` wrote to log files.

        For archived commits only logs of slices that were live when the last of them was archived.
        """
        promises: dict[FileGroupId, list[LogPromise]] = {}
        if self.archived.config.table_type is TableType.MERGE_ON_READ:
            for group, file in self._logged(as_of, partitions):
                promise = LogPromise(file.path, file.instant_time, file.start, file.size, file.checksum)
                promises.setdefault(group, []).append(promise)
        return promises

    def told(self, as_of: str | None) -> ToldLogs:
        archived = self.archived_as_of(as_of)
        writes = self.timeline.completed().writes().up_to(as_of)
        newer = [one for one in writes if is_later(one.requested_time, archived.boundary)]
        active = frozenset(one.requested_time for one in newer if self.commits.named(one) is not None)
        start = self.timeline.start
        # Newer than everything archived and older than the timeline: taken back, like anything that reached an object store after that.
        gap = (archived.boundary, start.requested_time) if start is not None and archived.is_known and archived.boundary else ("", "")
        return ToldLogs(active, archived.told_to, bool(archived.told_to) and archived.all_told, gap)

    def has(self, base: BaseFile) -> bool:
        return self._named.has(base)

    def has_log(self, log: LogFile) -> bool:
        return self._named.has_log(log)

    @cached_property
    def _named(self) -> NamedFiles:
        return NamedFiles(self.timeline, self.commits.named, self.archived.files)

    @property
    def proven_since(self) -> str:
        """Instant from which the active timeline has every write; "" if nothing was ever archived."""
        start = self.timeline.start
        return start.requested_time if start is not None and self.archived.listed() else ""

    def writes(self, as_of: str | None = None) -> Iterator[WriteRecord]:
        """What completed active writes up to `as_of` (None: all) left, oldest first."""
        for instant in self.timeline.completed().writes().up_to(as_of):
            yield self.commits.record(instant)

    def savepointed(self, moment: str) -> LiveFiles | None:
        """Files as of an archived savepointed write; None if unknown."""
        savepoint = self.timeline.savepoint_at(moment)
        return None if savepoint is None else self.archived.as_of(savepoint)

    def _logged(self, as_of: str | None, partitions: frozenset[str] | None) -> Iterator[tuple[FileGroupId, WrittenFile]]:
        archived = self.archived_as_of(as_of)
        for group, live in archived.live.within(partitions):
            yield from ((group, log) for log in live.logs)
        for write in self.writes(as_of):
            if is_later(write.instant_time, archived.boundary):
                yield from ((group, file) for group, file in write.files_in(partitions) if file.is_log)

    def archived_as_of(self, as_of: str | None) -> ArchivedFiles:
        """What archived writes up to `as_of` left; unknown if some are later, unless a savepoint is on it.

        For a savepoint, what was recorded for it takes precedence: a compaction that was pending beside it may be archived since, with an
        earlier time. Its inputs are not live any more, but the savepoint reads them.
        """
        found = self.archived.files()
        if as_of is None:
            return found
        kept, is_last = self.savepointed(as_of), not is_later(found.boundary, as_of)
        if is_last and (kept is None or not kept.partitions()):
            return found
        if kept is None:
            return ArchivedFiles(LiveFiles(), is_known=False, all_told=False)
        return ArchivedFiles(kept, as_of, told_to=found.told_to if is_last else "", all_told=False)

    def _proven_writes(self) -> Iterator[_Write]:
        """Completed writes in order. Savepointed ones that outlived the archiving of later ones prove nothing about now."""
        since = self.proven_since
        for instant in self.timeline.completed().writes().instants:
            if not is_later(since, instant.requested_time):
                yield instant, self.commits.of(instant)

    def _written(self, instant: Instant, partitions: frozenset[str] | None) -> Iterator[ExpectedFile]:
        for group, file in self.commits.record(instant).files_in(partitions):
            if not file.is_log:
                yield ExpectedFile(group, instant.requested_time, file.path)


def _is_outside(group: FileGroupId, partitions: frozenset[str] | None) -> bool:
    return partitions is not None and group.partition_path not in partitions


def _previous(metadata: HoodieCommitMetadata) -> Iterator[tuple[FileGroupId, str | None]]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id:
                yield FileGroupId(partition, stat.file_id), stat.prev_commit
