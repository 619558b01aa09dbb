"""Files of a table according to its commits: they must be on storage, whatever a listing finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lakehouse_engine.compat import cached_property
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import age, is_later, latest


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a completed write records about a base file that it made, or a log file that it wrote to.

    `path` is relative to the table. `size` is the offset in bytes at which the write ended; 0 if not recorded. `start` is the offset at
    which it began, None if unknown (archives do not keep it). `base_instant` is the slice's. `checksum` is of the written bytes, as text;
    None if the commit has none.
    """

    path: str
    instant_time: str
    base_instant: str
    is_log: bool = False
    size: int = 0
    start: int | None = None
    checksum: str | None = None


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """Newest base file of a group, and every write to logs of that slice or of compactions planned after it, oldest first."""

    base: WrittenFile | None = None
    logs: tuple[WrittenFile, ...] = ()

    def files(self) -> Iterator[WrittenFile]:
        if self.base is not None:
            yield self.base
        yield from self.logs


# Has no slots, so that derived values can be cached on the instance.
@dataclass(frozen=True)
class WriteRecord:
    """Files of a completed write by group, and the groups that it removed from the table."""

    instant_time: str
    files: tuple[tuple[FileGroupId, WrittenFile], ...] = ()
    replaced: tuple[FileGroupId, ...] = ()

    @cached_property
    def by_partition(self) -> Mapping[str, list[tuple[FileGroupId, WrittenFile]]]:
        """Files by partition."""
        found: dict[str, list[tuple[FileGroupId, WrittenFile]]] = {}
        for group, file in self.files:
            found.setdefault(group.partition_path, []).append((group, file))
        return found

    def files_in(self, partitions: frozenset[str] | None) -> Iterator[tuple[FileGroupId, WrittenFile]]:
        """Files of the given partitions (None: all); the cost does not depend on the others."""
        if partitions is None:
            yield from self.files
        else:
            for path in sorted(partitions & self.by_partition.keys()):
                yield from self.by_partition[path]


@dataclass(slots=True)
class _Collected:
    base: WrittenFile | None = None
    logs: dict[tuple[str, str], WrittenFile] = field(default_factory=dict)

    def add(self, file: WrittenFile) -> None:
        if file.is_log:
            if self.base is None or not is_later(self.base.instant_time, file.base_instant):
                self.logs[file.path, file.instant_time] = file
        elif self.base is None or not is_later(self.base.instant_time, file.instant_time):
            self.base = file
            self.logs = {key: log for key, log in self.logs.items() if not is_later(file.instant_time, log.base_instant)}

    def live(self, replaced_at: str) -> LiveGroup | None:
        """The live group; None if everything known of it was written before it was replaced."""
        found = LiveGroup(self.base, tuple(sorted(self.logs.values(), key=lambda log: (age(log.instant_time), log.path))))
        return found if is_later(latest(file.instant_time for file in found.files()), replaced_at) else None


_Groups = Mapping[FileGroupId, LiveGroup]


class LiveFiles:
    """Files of a table after some of its writes, by group. Immutable.

    `after` adds writes in any order; its cost depends only on their partitions.
    """

    def __init__(self, groups: _Groups | None = None) -> None:
        by_partition: dict[str, dict[FileGroupId, LiveGroup]] = {}
        for group, live in (groups or {}).items():
            by_partition.setdefault(group.partition_path, {})[group] = live
        self._by_partition: Mapping[str, _Groups] = by_partition

    def after(self, writes: Iterable[WriteRecord]) -> LiveFiles:
        """Live files after adding these completed writes, each of which may be older or newer than the known ones. Groups that a write
        replaced are not remembered: writes to such a group come no later than with the write that replaced it.
        """
        changed: dict[FileGroupId, _Collected] = {}
        replaced: dict[FileGroupId, str] = {}
        for write in writes:
            for group in write.replaced:
                replaced[group] = latest((write.instant_time, replaced.get(group, "")))
            for group, file in write.files:
                if group not in changed:
                    changed[group] = self._begun(group)
                changed[group].add(file)
        for group in replaced:
            if group not in changed and self.of(group) is not None:
                changed[group] = self._begun(group)
        return self._with({group: collected.live(replaced.get(group, "")) for group, collected in changed.items()})

    def without(self, paths: frozenset[str]) -> LiveFiles:
        """Live files without the files at these paths."""
        groups = {group: _without(live, paths) for group, live in self.within(None)}
        return LiveFiles({group: live for group, live in groups.items() if live.base is not None or live.logs})

    @property
    def groups(self) -> _Groups:
        """All groups."""
        return dict(self.within(None))

    def of(self, group: FileGroupId) -> LiveGroup | None:
        """One group; None if it has no live files."""
        return self._by_partition.get(group.partition_path, {}).get(group)

    def within(self, partitions: frozenset[str] | None) -> Iterator[tuple[FileGroupId, LiveGroup]]:
        """Groups of the given partitions (None: all); the cost does not depend on the others."""
        for path in self._by_partition if partitions is None else sorted(partitions & self._by_partition.keys()):
            yield from self._by_partition[path].items()

    def files(self) -> Iterator[tuple[FileGroupId, WrittenFile]]:
        """Every file, or write to a log file, with its group."""
        for group, live in self.within(None):
            for file in live.files():
                yield group, file

    def partitions(self) -> set[str]:
        return set(self._by_partition)

    def __len__(self) -> int:
        return sum(len(groups) for groups in self._by_partition.values())

    def _begun(self, group: FileGroupId) -> _Collected:
        known = self.of(group) or LiveGroup()
        return _Collected(known.base, {(log.path, log.instant_time): log for log in known.logs})

    def _with(self, changed: Mapping[FileGroupId, LiveGroup | None]) -> LiveFiles:
        """Copy with the changed groups; None for a removed one. Shares everything unchanged."""
        if not changed:
            return self
        new: dict[str, dict[FileGroupId, LiveGroup]] = {}
        for group, live in changed.items():
            path = group.partition_path
            groups = new[path] if path in new else new.setdefault(path, dict(self._by_partition.get(path, {})))
            if live is None:
                groups.pop(group, None)
            else:
                groups[group] = live
        found = LiveFiles()
        found._by_partition = {path: groups for path, groups in {**self._by_partition, **new}.items() if groups}
        return found


def live_partitions(before: LiveFiles, writes: Iterable[WriteRecord]) -> set[str]:
    """Partitions of `before.after(writes)`. Looks at file groups only where some were replaced."""
    live: set[str] = set()
    replaced: set[FileGroupId] = set()
    unread: list[tuple[FileGroupId, ...]] = []
    for write in sorted(writes, key=lambda one: age(one.instant_time), reverse=True):
        unread.append(write.replaced)
        new = write.by_partition.keys() - live
        if new:
            # Only of newer writes, and of this one: what is written to a group later is live again.
            replaced.update(*unread)
            unread.clear()
            live.update(path for path in new if not replaced or any(group not in replaced for group, _ in write.by_partition[path]))
    replaced.update(*unread)
    for path in before.partitions() - live:
        if any(group not in replaced for group, _ in before.within(frozenset((path,)))):
            live.add(path)
    return live


@dataclass(frozen=True, slots=True)
class LiveCheckpoint:
    """Live files as of an instant. `archive_number` is the number of the newest archive file whose writes are counted.

    For writes up to the instant `told_to` ("": none), all files were known when the write was counted. So a file of such a write that is
    missing here was not named by it, or is an older version.
    """

    live: LiveFiles
    archive_number: int = 0
    told_to: str = ""


def _without(live: LiveGroup, paths: frozenset[str]) -> LiveGroup:
    base = None if live.base is not None and live.base.path in paths else live.base
    return replace(live, base=base, logs=tuple(log for log in live.logs if log.path not in paths))
