"""Damaged files are set aside before they are replaced or removed: what is left of them may still tell somebody something."""

from __future__ import annotations

import zlib

from lakehouse_engine.errors import StoredFileExistsError
from lakehouse_engine.storage.base import Storage

FOLDER = ".hoodie/.aux/damaged"


def set_aside(storage: Storage, path: str) -> str:
    """Copy the file at `path` to `FOLDER`, durably; where it is there. Doing it again makes no second copy."""
    content = storage.read(path)
    copy = f"{FOLDER}/{path.removeprefix('.hoodie/').replace('/', '_')}.{zlib.crc32(content):08x}"
    try:
        storage.create(copy, content)
    except StoredFileExistsError:
        storage.sync(copy)
    return copy
