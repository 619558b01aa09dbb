"""Cache of base file footers: a file never changes under its name, so its footer is read once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.files.base_file import base_file_metadata
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of


def _stored_bytes(footer: pq.FileMetaData) -> int:
    return int(footer.serialized_size)


@dataclass(slots=True)
class FooterCache:
    """Cached footers, at most `limit` bytes of them as stored."""

    limit: int
    kept: BoundedCache[pq.FileMetaData] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = BoundedCache(self.limit, _stored_bytes)

    def read(self, storage: Storage, file: BaseFile, *, verify: bool = True) -> pq.FileMetaData:
        """Footer of a listed file, checked when it is read; without `verify` it may be unchecked. Raises as `base_file_metadata`."""
        key = _key(storage, file)
        found = None if key is None else self.kept.get(key)
        if found is None:
            found = base_file_metadata(storage, file.path, listed=file.size, verify=verify)
            if key is not None and verify:  # unchecked footers are not shared with other readers
                self.kept.put(key, found)
        return found

    def keep(self, storage: Storage, file: BaseFile, footer: pq.FileMetaData) -> None:
        """Cache a footer that was just read and checked."""
        key = _key(storage, file)
        if key is not None:
            self.kept.replace(key, footer)


def _key(storage: Storage, file: BaseFile) -> Hashable | None:
    identity = identity_of(storage)
    return None if identity is None or file.size < 0 else (identity, file.path, file.size)


FOOTERS = FooterCache(limit=64 * 1024 * 1024)
"""Shared by all tables that this process reads."""
