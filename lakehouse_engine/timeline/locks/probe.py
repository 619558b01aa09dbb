"""The clock of the table's storage."""

from __future__ import annotations

import uuid

from lakehouse_engine.errors import StorageError
from lakehouse_engine.model.files import join_path
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.paths import temporary_name


def storage_now_ms(storage: Storage, folder: str) -> int:
    """Modification time, in milliseconds since the epoch, of a file just made in `folder`. It has a temporary name: no listing shows one
    that a killed process left, and a repair removes it.

    Ages of files must be measured by it: this machine's clock may differ from the one that dates them.
    """
    path = join_path(folder, temporary_name(uuid.uuid4().hex))
    storage.create(path, b"")
    try:
        entry = storage.head(path)
        if entry is None:
            raise StorageError(f"{path!r} is not there after it was made", path=path, root=storage.root)
        return entry.modified_ms
    finally:
        storage.delete(path)
