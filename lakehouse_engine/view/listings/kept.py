"""Partition listings that outlive the state that made them (docs/adr/0026).

For a known table, only partitions that its timeline has touched since are listed again. A listing is kept only if completed writes named
every relevant data file in it, because other files (of pending, abandoned or late writes) come and go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name
from lakehouse_engine.model.files import FileGroup, FileSlice, LogFile
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.view.timeline_diff import Moment


@dataclass(slots=True)
class KeptPartition:
    """Files of a partition as listed. `groups` were made from them; `rests_on` is what else they depend on. `latest` are the current
    slices, once they were computed.
    """

    files: Listing
    groups: list[FileGroup]
    rests_on: Hashable
    latest: list[FileSlice] | None = None


@dataclass(slots=True)
class KeptPartitions:
    """What consecutive states of one table know about its partitions at one moment. Thread-safe.

    A state of another moment neither reads nor adds, until it moves everything to its own moment (`move`).
    """

    _moment: Moment | None = None
    _found: dict[str, KeptPartition] = field(default_factory=dict)
    _paths: frozenset[str] | None = None
    _unchecked: frozenset[str] | None = None
    _guard: Lock = field(default_factory=Lock)

    def move(self, now: Moment, is_partition: Callable[[str], bool]) -> None:
        """Forget what was touched since. `is_partition` checks whether touched partitions (still) exist."""
        with self._guard:
            then, paths = self._moment, self._paths
        touched = None if then is None else now.touched_since(then)
        if touched is not None and paths is not None:
            paths = (paths - touched) | {path for path in touched if is_partition(path)}
        with self._guard:
            if self._moment is not then or touched is None:
                self._found, self._unchecked, paths = {}, None, None
            else:
                self._found = {path: found for path, found in self._found.items() if path not in touched}
                # A partition that changes constantly may miss something each time.
                unchecked = None if self._unchecked is None or paths is None else self._unchecked | touched | (paths - self._found.keys())
                self._unchecked = unchecked
            self._moment, self._paths = now, paths

    def forget(self, now: Moment) -> None:
        """Forget everything: a listing was wrong, and may be right next time."""
        with self._guard:
            if self._moment is now:
                self._found, self._unchecked, self._paths = {}, None, None

    def get(self, partition: str, now: Moment) -> KeptPartition | None:
        with self._guard:
            return self._found.get(partition) if self._moment is now else None

    def put(self, partition: str, found: KeptPartition | None, now: Moment) -> None:
        """Keep a listing; None if the partition has to be listed again."""
        with self._guard:
            if self._moment is now and found is not None:
                self._found[partition] = found
            elif self._moment is now:
                self._found.pop(partition, None)

    def paths(self, now: Moment) -> frozenset[str] | None:
        """Paths of all partitions; None if unknown."""
        with self._guard:
            return self._paths if self._moment is now else None

    def unchecked(self, now: Moment) -> frozenset[str] | None:
        """Partitions that were not yet found complete; None for all."""
        with self._guard:
            return self._unchecked if self._moment is now else None

    def put_checked(self, now: Moment) -> None:
        """Record that all partitions have their files."""
        with self._guard:
            if self._moment is now:
                self._unchecked = frozenset()

    def put_paths(self, paths: Iterable[str], now: Moment) -> None:
        with self._guard:
            if self._moment is now:
                self._paths = frozenset(paths)


@dataclass(slots=True)
class KeptAt:
    """Kept listings, seen from one state. `rests_on` is what slices depend on besides their partition's files, `is_named` says whether a
    completed write named a log file, `is_partition` whether a path is a partition now.
    """

    store: KeptPartitions
    now: Moment
    rests_on: Callable[[], Hashable]
    is_named: Callable[[LogFile], bool]
    is_partition: Callable[[str], bool]
    _moved: bool = False
    _basis: Hashable = None

    @property
    def basis(self) -> Hashable:
        if self._basis is None:
            self._basis = self.rests_on()
        return self._basis

    def apart(self, store: KeptPartitions) -> KeptAt:
        """The same moment, with listings in another store."""
        return replace(self, store=store, _moved=False)

    def get(self, partition: str) -> KeptPartition | None:
        return self._store().get(partition, self.now)

    def keep(self, partition: str, files: Listing, groups: list[FileGroup]) -> None:
        """Keep a listing, if possible."""
        settled = is_settled(files, groups, self.is_named)
        self._store().put(partition, KeptPartition(files, groups, self.basis) if settled else None, self.now)

    def forget(self) -> None:
        self._store().forget(self.now)

    def paths(self) -> frozenset[str] | None:
        return self._store().paths(self.now)

    def unchecked(self) -> frozenset[str] | None:
        return self._store().unchecked(self.now)

    def keep_checked(self) -> None:
        self._store().put_checked(self.now)

    def keep_paths(self, paths: Iterable[str]) -> None:
        self._store().put_paths(paths, self.now)

    def _store(self) -> KeptPartitions:
        if not self._moved:
            # Only on demand: it reads recent commits.
            self.store.move(self.now, self.is_partition)
            self._moved = True
        return self.store


def is_settled(files: Sequence[StoredFile], groups: Iterable[FileGroup], is_named: Callable[[LogFile], bool]) -> bool:
    """True if each data file is part of a slice, and completed writes named those of the newest slices. (A missing log of an older slice
    shows when it is read.)
    """
    listed, counted = sum(1 for file in files if is_base_file_name(file.name) or is_log_file_name(file.name)), 0
    for group in groups:
        newest = True
        for piece in group.slices:
            counted += len(piece.log_files) + (piece.base_file is not None)
            if newest and not all(is_named(log) for log in piece.log_files):
                return False
            newest = newest and piece.base_file is None
    return counted == listed
