"""Footers of base files, kept: a file never changes under its name, so what a filter asks of it is read once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Lock

import pyarrow.parquet as pq

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.base_file import base_file_metadata
from lakehouse_engine.storage.base import Storage


@dataclass(slots=True)
class FooterCache:
    """At most `limit` bytes of footers, as they are stored; the least recently used drop out. Thread-safe."""

    limit: int
    size: int = 0
    _kept: OrderedDict[Hashable, pq.FileMetaData] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def read(self, storage: Storage, file: BaseFile) -> pq.FileMetaData:
        """The footer of a listed file, checked when it is read. Raises as `base_file_metadata`."""
        if storage.local_path() is None:
            # Two in memory may have one name.
            return base_file_metadata(storage, file.path)
        key = (storage.root, file.path, file.size)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = base_file_metadata(storage, file.path)
        if file.size >= 0:
            self._put(key, found)
        return found

    def _put(self, key: Hashable, metadata: pq.FileMetaData) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = metadata
            self.size += metadata.serialized_size
            while self.size > self.limit:
                self.size -= self._kept.popitem(last=False)[1].serialized_size


FOOTERS = FooterCache(limit=64 * 1024 * 1024)
"""Of all tables that this process reads."""
