"""A file of one storage as a file of another one, or under a second name of the same."""

from __future__ import annotations

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store, options_of
from lakehouse_engine.storage.os_errors import as_storage_errors

_AT_ONCE = 8 * 1024 * 1024
_MOST_BY_STORE = 5 * 1024**3
"""Bytes of an object that S3 copies by itself, with one request."""


def link_file(source: Storage, path: str, target: Storage, name: str) -> bool:
    """As `Storage.link`; False where `source` has no files of this machine."""
    original = source.local_path(path)
    return original is not None and target.link(name, original)


def copy_file(source: Storage, path: str, target: Storage, name: str, *, size: int) -> None:
    """Durable on return. By the store itself, where both are in one bucket and the file's `size` allows for it.

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
