"""Partitions and files of a table in an object store, where one request lists up to a thousand objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakehouse_engine.storage.base import Listing, Storage, StoredFile, TaggedStorage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.view.listings.listing import META_FOLDER, Lister, StorageLister

MOST = 10_000
"""Maximum number of objects that are listed at once, a thousand per request. In larger tables directories are listed one by one."""


def lister_of(storage: Storage, *, partitioned: bool) -> Lister:
    """Lister of the table: one flat listing if it is partitioned and in an object store, else directory by directory."""
    return FlatLister(storage) if partitioned and in_object_store(storage) else StorageLister(storage, partitioned)


@dataclass(slots=True)
class FlatLister:
    """Finds the partitions of a partitioned table with one listing of all objects, which also gives their files.

    The files of a partition are returned once; a second call lists again.
    """

    storage: TaggedStorage
    _found: dict[str, Listing] = field(default_factory=dict)

    def partitions(self) -> list[str]:
        objects = self.storage.walk_up_to("", MOST)
        if objects is None:
            return self._one_by_one.partitions()
        folders = Folders.of(objects)
        self._found = folders.files
        return StorageLister(folders, partitioned=True).partitions()

    def is_partition(self, path: str) -> bool:
        return self._one_by_one.is_partition(path)

    def files(self, partition_path: str) -> Listing:
        known = self._found.pop(partition_path, None)
        return self._one_by_one.files(partition_path) if known is None else known

    def look_ahead(self, partitions: Sequence[str]) -> None:
        """Does nothing: `partitions` has found all files, or those of one partition are listed."""

    def forget(self, partition_path: str | None = None) -> None:
        if partition_path is None:
            self._found.clear()
        else:
            self._found.pop(partition_path, None)

    @property
    def is_hearsay(self) -> bool:
        return False

    @property
    def _one_by_one(self) -> StorageLister:
        return StorageLister(self.storage, partitioned=True)


@dataclass(frozen=True, slots=True)
class Folders:
    """Directories of the objects."""

    files: dict[str, Listing]
    within: dict[str, dict[str, StoredFile]]
    """Subdirectories by directory path."""
    root: str = ""

    @classmethod
    def of(cls, objects: Listing) -> Folders:
        """Entries of a table without those in `.hoodie`."""
        found = cls({"": []}, {"": {}})
        for entry in objects:
            if not entry.path.startswith(f"{META_FOLDER}/"):
                found._folder(parent_of(entry.path)).append(entry)
        return found

    def _folder(self, path: str) -> Listing:
        known = self.files.get(path)
        if known is None:
            known = self.files[path] = []
            above = parent_of(path)
            self._folder(above)
            self.within.setdefault(above, {})[path] = StoredFile(path, 0, 0, is_directory=True)
        return known

    def list(self, path: str = "") -> Listing:
        return sorted([*self.within.get(path, {}).values(), *self.files.get(path, [])], key=lambda entry: entry.path)

    def head(self, path: str) -> StoredFile | None:
        above = parent_of(path)
        file = next((entry for entry in self.files.get(above, []) if entry.path == path), None)
        return file if file is not None else self.within.get(above, {}).get(path)
