"""Finds a table's partitions and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.storage.base import Directories, Listing
from lakehouse_engine.storage.locations import has_file

META_FOLDER = ".hoodie"


class Lister(Protocol):
    """Lists a table. Paths are relative to the table, "" for the one partition of a table without partitions."""

    def partitions(self) -> list[str]:
        """Every partition path, sorted, including partitions whose files are all replaced or deleted."""
        ...

    def is_partition(self, path: str) -> bool:
        """True if a directory is marked as a partition."""
        ...

    def files(self, partition_path: str) -> Listing:
        """Files of a partition, committed or not; empty if it does not exist."""
        ...

    def look_ahead(self, partitions: Sequence[str]) -> None:
        """Take note that these partitions will be asked about: who finds the files of several at once may do so now."""
        ...

    def forget(self, partition_path: str | None = None) -> None:
        """Make the next question about a partition (None: about any) read the storage."""
        ...

    @property
    def is_hearsay(self) -> bool:
        """True if an answer since the last `forget` of everything was not the storage's own listing."""
        ...


@dataclass(frozen=True, slots=True)
class StorageLister:
    """Lists the table's directories.

    A directory with a partition metafile is a partition, and is not searched further; others are (Hudi
    `FileSystemBackedTableMetadata.getPartitionPathsWithPrefixes`). In a `partitioned` table the search continues below the table's own
    directory.
    """

    storage: Directories
    partitioned: bool = False

    def partitions(self) -> list[str]:
        if self.partitioned and self._has_metafile(""):
            # An intruder, which must not hide what is below it.
            return ["", *sorted(self.below(""))]
        return sorted(self._search([""]))

    def below(self, path: str) -> Iterator[str]:
        """Partitions below a directory, unsorted; none of a table inside it."""
        folders = self._folders(self.storage.list(path))
        return self._search([one for one in folders if self.storage.head(f"{one}/{META_FOLDER}") is None])

    def _search(self, pending: list[str]) -> Iterator[str]:
        while pending:
            path = pending.pop()
            # Looking up the metafile avoids listing the partitions' files, which are most of a table.
            if self._has_metafile(path):
                yield path
                continue
            entries = self.storage.list(path)
            if _names_metafile(entries):
                yield path
            else:
                pending.extend(self._folders(entries))

    def is_partition(self, path: str) -> bool:
        return self._has_metafile(path) or _names_metafile(self.storage.list(path))

    def _has_metafile(self, path: str) -> bool:
        return has_file(self.storage, f"{path}/{PARTITION_METAFILE}" if path else PARTITION_METAFILE)

    def _folders(self, entries: Listing) -> list[str]:
        return [entry.path for entry in entries if entry.is_directory and entry.name != META_FOLDER]

    def look_ahead(self, partitions: Sequence[str]) -> None:
        """Does nothing: directories are listed one by one."""

    def forget(self, partition_path: str | None = None) -> None:
        """Nothing to forget."""

    @property
    def is_hearsay(self) -> bool:
        return False

    def files(self, partition_path: str) -> Listing:
        return [entry for entry in self.storage.list(partition_path) if not entry.is_directory]


def _names_metafile(entries: Listing) -> bool:
    """In the base file format (hoodie.partition.metafile.use.base.format) the name has an extension."""
    return any(entry.name.startswith(f"{PARTITION_METAFILE}.") for entry in entries)
