"""Checks base files whose rows another engine reads, for what that engine's reader does not check."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.base_file import check_headers, check_size, missing_file
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.storage.base import Storage


@dataclass(slots=True)
class CheckedFiles:
    """Remembers files whose footer and page headers were checked; beyond `limit`, drops the least recently used.

    A file with another size, modification time or tag counts as another file. Thread-safe.
    """

    limit: int
    known: BoundedCache[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.known = BoundedCache(self.limit)

    def check(self, storage: Storage, files: Iterable[BaseFile]) -> tuple[Hashable, ...]:
        """Check the files that are not known yet, in threads; returns keys that identify the files in their current state.

        Raises `MissingFileError`, and `CorruptFileError`, also if a file's size differs from the listed one.
        """
        keyed = [(self._key(storage, file), file) for file in files]
        new = [(key, file) for key, file in keyed if not self.known.get(key)]

        def look(one: tuple[Hashable, BaseFile]) -> None:
            FOOTERS.keep(storage, one[1], check_headers(storage, one[1].path))

        looking_runner(local_runner({}), storage).run(look, new, name="checksums")
        for key, _ in new:
            self.known.put(key, True)
        return tuple(key for key, _ in keyed)

    def _key(self, storage: Storage, file: BaseFile) -> Hashable:
        entry = storage.head(file.path)
        if entry is None:
            raise missing_file(file.path)
        check_size(file.path, entry.size, file.size)
        return storage.root, file.path, entry.version


CHECKED = CheckedFiles(limit=100_000)
"""Shared by all tables whose reads this process plans."""
