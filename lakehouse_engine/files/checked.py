"""Base files whose rows another engine reads, with what its reader does not check looked at here."""

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
    """Files whose footer and page headers were found to be as they were written. At most `limit`, the least recently used drop out.

    A file counts as another one when its size, its time of modification or its tag is. Thread-safe.
    """

    limit: int
    known: BoundedCache[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.known = BoundedCache(self.limit)

    def check(self, storage: Storage, files: Iterable[BaseFile]) -> tuple[Hashable, ...]:
        """Look at those that are not known yet, in threads. What tells the files, as they are now, from others.

        Raises `MissingFileError`, and `CorruptFileError`, for a file of another size than it was listed with too.
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
"""Of all tables that this process plans reads of."""
