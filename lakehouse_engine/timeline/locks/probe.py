"""The clock of the table's storage."""

from __future__ import annotations

import uuid

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.base import Storage


def storage_now_ms(storage: Storage, folder: str) -> int:
    """Modification time, in milliseconds since the epoch, of a file just made in `folder`.

    Ages of files must be measured by it: this machine's clock may differ from the one that dates them.
    """
    path = f"{folder}/.probe-{uuid.uuid4().hex}" if folder else f".probe-{uuid.uuid4().hex}"
    storage.create(path, b"")
    try:
        entry = storage.head(path)
        if entry is None:
            raise StorageError(f"{path!r} is not there after it was made", path=path, root=storage.root)
        return entry.modified_ms
    finally:
        storage.delete(path)
