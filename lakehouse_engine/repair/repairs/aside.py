"""Keeps a copy of damaged files before they are replaced or removed, because their remains may still be useful."""

from __future__ import annotations

import zlib

from lakehouse_engine.errors import StoredFileExistsError
from lakehouse_engine.storage.base import Storage

FOLDER = ".hoodie/.aux/damaged"


def set_aside(storage: Storage, path: str) -> str:
    """Copy the file at `path` to `FOLDER`, durably, if it exists. Repeating it makes no second copy."""
    content = storage.read(path)
    copy = f"{FOLDER}/{path.removeprefix('.hoodie/').replace('/', '_')}.{zlib.crc32(content):08x}"
    try:
        storage.create(copy, content)
    except StoredFileExistsError:
        storage.sync(copy)
    return copy
