"""Listings of partitions that outlive the state that made them (docs/adr/0026).

A table that is known is looked at again by what its timeline says since: partitions that nothing touched are not listed again. A listing
is kept only where completed writes named every data file in it that counts: what a write left that is under way, was given up or outlived
its commit comes and goes without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name
from lakehouse_engine.model.files import FileGroup, FileSlice, LogFile
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.view.news import Moment


@dataclass(slots=True)
class KeptPartition:
    """The files of a partition as they were listed. `groups` were made of them; `rests_on` is what else they follow from. `latest` are the
    slices that make the table now, once somebody asked.
    """

    files: Listing
    groups: list[FileGroup]
    rests_on: Hashable
    latest: list[FileSlice] | None = None


@dataclass(slots=True)
class KeptPartitions:
    """What states of one table that follow each other know of its partitions; all of it holds at one moment. Thread-safe.

    A state of another moment neither finds anything nor adds to it, until it moves the whole to its own (`move`).
    """

    _moment: Moment | None = None
    _found: dict[str, KeptPartition] = field(default_factory=dict)
    _paths: frozenset[str] | None = None
    _unchecked: frozenset[str] | None = None
    _guard: Lock = field(default_factory=Lock)

    def move(self, now: Moment, is_partition: Callable[[str], bool]) -> None:
        """Forget what was touched since. `is_partition` is asked of partitions that were, whether they are there (still)."""
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
                # A partition that is listed each time may lack something each time.
                unchecked = None if self._unchecked is None or paths is None else self._unchecked | touched | (paths - self._found.keys())
                self._unchecked = unchecked
            self._moment, self._paths = now, paths

    def forget(self, now: Moment) -> None:
        """Forget everything: something is wrong with what was listed, and may be right the next time."""
        with self._guard:
            if self._moment is now:
                self._found, self._unchecked, self._paths = {}, None, None

    def get(self, partition: str, now: Moment) -> KeptPartition | None:
        with self._guard:
            return self._found.get(partition) if self._moment is now else None

    def put(self, partition: str, found: KeptPartition | None, now: Moment) -> None:
        """Keep what was found; None: that it has to be listed."""
        with self._guard:
            if self._moment is now and found is not None:
                self._found[partition] = found
            elif self._moment is now:
                self._found.pop(partition, None)

    def paths(self, now: Moment) -> frozenset[str] | None:
        """The paths of all partitions, None where they are not known."""
        with self._guard:
            return self._paths if self._moment is now else None

    def unchecked(self, now: Moment) -> frozenset[str] | None:
        """Partitions of which it was not found that every file is there; None for all."""
        with self._guard:
            return self._unchecked if self._moment is now else None

    def put_checked(self, now: Moment) -> None:
        """All partitions have their files."""
        with self._guard:
            if self._moment is now:
                self._unchecked = frozenset()

    def put_paths(self, paths: Iterable[str], now: Moment) -> None:
        with self._guard:
            if self._moment is now:
                self._paths = frozenset(paths)


@dataclass(slots=True)
class KeptAt:
    """What is kept, as the state of one moment sees it. `rests_on` tells what slices follow from besides the files of their partition,
    `is_named` whether a completed write named a log file, `is_partition` whether a path is a partition now.
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

    def get(self, partition: str) -> KeptPartition | None:
        return self._store().get(partition, self.now)

    def keep(self, partition: str, files: Listing, groups: list[FileGroup]) -> None:
        """Keep a listing, if it can be."""
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
            # Not before somebody asks: it reads what was committed since.
            self.store.move(self.now, self.is_partition)
            self._moved = True
        return self.store


def is_settled(files: Sequence[StoredFile], groups: Iterable[FileGroup], is_named: Callable[[LogFile], bool]) -> bool:
    """Whether each data file is part of a slice, and completed writes named those of the newest slices. (A log of an older slice that is
    gone shows when that is read.)
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
