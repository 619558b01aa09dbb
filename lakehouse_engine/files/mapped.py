"""Gives the content of whole files without loading them."""

from __future__ import annotations

import mmap

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors


def mapped(storage: Storage, path: str) -> bytes | memoryview:
    """Content of a file that no longer changes: mapped if it is in a local file system, else read.

    Raises `StoredFileNotFoundError`.
    """
    local = storage.local_path(path)
    if local is None:
        return storage.read(path)
    with as_storage_errors("read", path, storage.root), open(local, "rb") as file:
        # An empty file cannot be mapped.
        if not file.seek(0, 2):
            return b""
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
