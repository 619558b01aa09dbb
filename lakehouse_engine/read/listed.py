"""Finds the files of a table for reads by the partition `files` of its metadata table, where that takes fewer requests than listing it.

In object stores only, and only for reads (docs/adr/0072). What it says is compared with the commits like a listing: a file that these
demand and it lacks, or another size, makes the reading list the table. Base files that it names and no commit does are not read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.manifest.manifest import Manifest
from lakehouse_engine.metadata_table.answers import listed_files, partition_paths, rows_by_partition
from lakehouse_engine.metadata_table.partitions import FILES
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.files import join_path
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.view.listings.listing import Lister
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

FROM_PARTITIONS = 8
"""Number of partitions from which on the metadata table is asked for their files: it is opened with fewer requests than list them."""
FROM_FILES = 8_000
"""Number of files from which on it is asked for those of the whole table: fewer are listed at once, a thousand per request."""


def listed_by_metadata_table(state: TableState, trusted: Trusted) -> TableState:
    """The state as reads should list it: by its metadata table, if that may be asked. `trusted` is the state's."""
    if state.lists_only or not in_object_store(state.storage) or not trusted.has(FILES):
        return state
    return state.listed_by(lambda inner: FilesLister(inner, trusted, partial(_written_files, state.manifest)))


def _written_files(manifest: Manifest) -> int:
    """About how many files a listing would show."""
    try:
        return sum(1 for _ in manifest.bases(None, None))
    except MetadataError:
        return 0  # planning reports the damage


@dataclass(slots=True)
class FilesLister:
    """Lists a table by its metadata table, if many partitions or files are asked for, else by `inner`.

    `written` counts the files that commits name. The files of a partition are returned once; a second call asks `inner`.
    """

    inner: Lister
    trusted: Trusted
    written: Callable[[], int]
    _paths: frozenset[str] | None = None
    _found: dict[str, Listing] = field(default_factory=dict)
    _is_told: bool = False
    _lists: bool = False

    def partitions(self) -> list[str]:
        paths = None if self._lists or self.written() < FROM_FILES else self.trusted.answer(FILES, partition_paths)
        if paths is None:
            self._lists = True
            return self.inner.partitions()
        self._paths, self._is_told = frozenset(paths), True
        return paths

    def is_partition(self, path: str) -> bool:
        return self.inner.is_partition(path)

    def look_ahead(self, partitions: Sequence[str]) -> None:
        asked = [path for path in partitions if path not in self._found]
        if self._lists or not asked or (self._paths is None and len(asked) < FROM_PARTITIONS):
            return
        found = self.trusted.answer(FILES, partial(_files_of, asked))
        if found is not None:
            self._found.update(found)
            self._is_told = True

    def files(self, partition_path: str) -> Listing:
        if self._paths is not None and partition_path not in self._paths:
            return []
        known = self._found.pop(partition_path, None)
        return self.inner.files(partition_path) if known is None else known

    def forget(self, partition_path: str | None = None) -> None:
        if partition_path is None:
            if self._is_told:
                name, root = self.trusted.data.config.name, self.trusted.data.storage.root
                logger.warning("%s (%s) is listed: the files in its metadata table are not those that its commits demand", name, root)
            self._found.clear()
            self._paths, self._is_told, self._lists = None, False, True
        else:
            self._found.pop(partition_path, None)
        self.inner.forget(partition_path)

    @property
    def is_hearsay(self) -> bool:
        return self._is_told


def _files_of(partitions: Sequence[str], table: MetadataTable) -> dict[str, Listing]:
    """Files of each of some partitions; none of one that it does not know."""
    by_path = rows_by_partition(listed_files(table, partitions))
    return {path: _stored(path, by_path[path]) if path in by_path else [] for path in partitions}


def _stored(path: str, files: pa.Table) -> Listing:
    names, sizes = (files.column(name).to_pylist() for name in ("name", "size"))
    return [StoredFile(join_path(path, name), size, 0) for name, size in zip(names, sizes, strict=True)]
