"""The manifest that follows from the commits of a table: what must be there is what writes said that they wrote.

The write stats of commits, archived or not, say it: the last write of a group up to an instant. Where nothing is known of archived
writes (`Commits`, `ArchivedFiles`), `prevCommit` of the first write after the instant says that there was one before.
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
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord, WrittenFile
from lakehouse_engine.model.logged import LogPromise, ToldLogs
from lakehouse_engine.model.order import Order, is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.timeline.timeline import Timeline

_Write = tuple[Instant, HoodieCommitMetadata]
NO_COMMIT = (None, "", "null")
"""What `prevCommit` is in the first write of a group."""


# Without slots, so that what is derived can be cached on the instance.
@dataclass(frozen=True)
class FromCommits:
    """A `Manifest` of the commits on `timeline` and of what archived ones left."""

    timeline: Timeline
    commits: Commits
    archived: Archived

    @property
    def order(self) -> Order:
        return self.timeline.order

    @cached_property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        """Every group that a completed replace commit of the active timeline names, with the time of the first that does."""
        replaced: dict[FileGroupId, str] = {}
        for instant in self.timeline:
            if instant.is_completed and instant.action is Action.REPLACE_COMMIT:
                for group in self.commits.of(instant).replaced_groups():
                    replaced.setdefault(group, instant.requested_time)
        return replaced

    def partitions(self) -> Sequence[str] | None:
        archived = self.archived.files()
        if archived.is_known:
            with suppress(MetadataError):
                # Another writer's commits may not say what they wrote.
                return self.commits.live_partitions(archived.live, self.timeline.completed().writes().instants) or None
        return None

    def written_partitions(self) -> set[str]:
        """Partitions that writes left files in. A torn commit names none here: what needs its files raises."""
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
                    continue  # the slice to be says nothing about the one before it
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
        """What completed commits not after `as_of` wrote to log files.

        Of archived commits only what they wrote to slices that were live when the last of them was archived.
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
        # Newer than whatever was archived, and older than the timeline: taken back, with what came to an object store after that.
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
        """The instant time from which on the active timeline has every write; "" when nothing was ever archived."""
        start = self.timeline.start
        return start.requested_time if start is not None and self.archived.listed() else ""

    def writes(self, as_of: str | None = None) -> Iterator[WriteRecord]:
        """What the completed writes of the active timeline up to `as_of` (None: all) left, oldest first."""
        for instant in self.timeline.completed().writes().up_to(as_of):
            yield self.commits.record(instant)

    def savepointed(self, moment: str) -> LiveFiles | None:
        """Which files there were as of a savepointed write that is archived; None where that is not known."""
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
        """What archived writes up to `as_of` left; nothing is known of it where some are after it, and no savepoint is on it.

        Of a savepoint always what was kept of it, if that was: a compaction that it was made beside may be archived since, with a time
        before its own. What that compaction was made of is live no more, and the savepoint reads it.
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
        """Completed writes in order. Savepointed ones that outlived the archival of later ones prove nothing about now."""
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
