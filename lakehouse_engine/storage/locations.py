"""Which storage a location is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from lakehouse_engine.errors import OptionError
from lakehouse_engine.storage.base import Storage, TaggedStorage
from lakehouse_engine.storage.local import LocalStorage

_SCHEMES = ("s3", "s3a", "s3n", "gs", "gcs", "az", "abfs", "abfss")


def is_object_store(location: str) -> bool:
    """Whether a location is an address in an object store, and not a directory."""
    return location.partition("://")[0] in _SCHEMES and "://" in location


def storage_for(location: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage that is rooted at `location`: a directory, or `s3://bucket/path`, `gs://...`, `az://...` with the store's `options`
    (docs/object-stores.md). Nothing is asked of the store.

    Raises `OptionError` for a location that the engine has no storage for, for options of a directory, and for those that there are not.
    """
    if is_object_store(location):
        # Imported where it is used: who keeps tables in directories need not wait for it.
        from lakehouse_engine.storage.object_store import ObjectStorage

        return ObjectStorage.at(location, options)
    scheme, found, _ = location.partition("://")
    if found and scheme != "file":
        raise OptionError(f"{location!r}: the engine has no storage for {scheme}://; there are directories, s3://, gs:// and az://")
    if options:
        raise OptionError(f"a directory has no storage_options ({', '.join(sorted(options))}): leave them out, or give a location like s3://...")
    return LocalStorage(location)


def storage_below(storage: Storage, path: str) -> Storage:
    """The storage that is rooted at a directory of another one."""
    return storage_for(storage.uri(path), dict(options_of(storage)))


def options_of(storage: Storage) -> tuple[tuple[str, str], ...]:
    """What a storage was opened with, as pairs; nothing for a directory."""
    inner = getattr(storage, "inner", storage)
    return tuple(getattr(inner, "options", ()))


def in_object_store(storage: Storage) -> TypeGuard[TaggedStorage]:
    """Whether it has objects, which are replaced by tag and have no second name, and of which none can be moved."""
    return is_object_store(storage.root)
