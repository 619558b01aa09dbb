"""Shares a file between storages, or gives it a second name in the same one."""

from __future__ import annotations

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store, options_of
from lakehouse_engine.storage.os_errors import as_storage_errors

_AT_ONCE = 8 * 1024 * 1024
_MOST_BY_STORE = 5 * 1024**3
"""Largest object (bytes) that S3 copies with one request."""


def link_file(source: Storage, path: str, target: Storage, name: str) -> bool:
    """Like `Storage.link`; False if `source` has no local files."""
    original = source.local_path(path)
    return original is not None and target.link(name, original)


def copy_file(source: Storage, path: str, target: Storage, name: str, *, size: int) -> None:
    """Copy a file; durable on return. The store copies it if both are in one bucket and the file's `size` permits.

    Raises `StorageError`, and `StoredFileNotFoundError` without the original.
    """
    is_known = in_object_store(source) and options_of(source) == options_of(target)
    if is_known and size <= _MOST_BY_STORE and in_object_store(target) and target.copy_object(name, source.uri(path)):
        return
    with (
        source.open_input(path) as original,
        as_storage_errors("write", name, target.root),
        target.open_output(name) as copy,
    ):
        while part := original.read_buffer(_AT_ONCE):
            copy.write(part)
    target.sync(name)
