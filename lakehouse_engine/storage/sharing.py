"""A file of one storage as a file of another one, or under a second name of the same."""

from __future__ import annotations

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

_AT_ONCE = 8 * 1024 * 1024


def link_file(source: Storage, path: str, target: Storage, name: str) -> bool:
    """As `Storage.link`; False where `source` has no files of this machine."""
    original = source.local_path(path)
    return original is not None and target.link(name, original)


def copy_file(source: Storage, path: str, target: Storage, name: str) -> None:
    """Durable on return. Raises `StorageError`."""
    with (
        source.open_input(path) as original,
        as_storage_errors("write", name, target.root),
        target.open_output(name) as copy,
    ):
        while part := original.read_buffer(_AT_ONCE):
            copy.write(part)
    target.sync(name)
