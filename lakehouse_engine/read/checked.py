"""Base files whose rows another engine reads, with what its reader does not check looked at here."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from threading import Lock

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.base_file import check_headers, check_size, missing_file
from lakehouse_engine.storage.base import Storage


@dataclass(slots=True)
class CheckedFiles:
    """Files whose footer and page headers were found to be as they were written. At most `limit`, the least recently used drop out.

    A file counts as another one when its size or its time of modification is. Thread-safe.
    """

    limit: int
    _kept: OrderedDict[Hashable, None] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def check(self, storage: Storage, files: Iterable[BaseFile]) -> None:
        """Look at those that are not known yet, in threads. Raises `MissingFileError`, and `CorruptFileError`, for a file of another size
        than it was listed with too.
        """
        keyed = [(self._key(storage, file), file.path) for file in files]
        new = [(key, path) for key, path in keyed if not self._knows(key)]
        LocalRunner(os.cpu_count() or 1).run(lambda file: check_headers(storage, file[1]), new, name="checksums")
        self._keep(key for key, _ in new)

    def _key(self, storage: Storage, file: BaseFile) -> Hashable:
        entry = storage.head(file.path)
        if entry is None:
            raise missing_file(file.path)
        check_size(file.path, entry.size, file.size)
        return storage.root, file.path, entry.size, entry.modified_ms

    def _knows(self, key: Hashable) -> bool:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return key in self._kept

    def _keep(self, keys: Iterable[Hashable]) -> None:
        with self._lock:
            self._kept.update(dict.fromkeys(keys))
            while len(self._kept) > self.limit:
                self._kept.popitem(last=False)


CHECKED = CheckedFiles(limit=100_000)
"""Of all tables that this process plans reads of."""
