"""Which storage a location is in."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage


def is_object_store(location: str) -> bool:
    """Whether a location is an address in an object store, and not a directory."""
    return "://" in location and not location.startswith("file:")


def storage_for(location: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage that is rooted at a directory. Raises `StorageError` for what no storage is there for, and for options of a directory."""
    if is_object_store(location):
        raise StorageError(f"{location!r} is in no storage that the engine has: give a directory")
    if options:
        raise StorageError(f"a directory has no storage_options ({', '.join(sorted(options))})")
    return LocalStorage(location)
