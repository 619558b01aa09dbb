"""Chooses the storage for a location."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Protocol, TypeGuard, runtime_checkable

from lakehouse_engine.errors import OptionError
from lakehouse_engine.storage.base import Directories, Storage, TaggedStorage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.read_only import ReadOnlyStorage

SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
"""Schemes of locations in object stores, and the engine's name for each."""


@runtime_checkable
class Nesting(Protocol):
    """A storage without locations, for example in memory: it makes storages rooted at its directories."""

    def below(self, path: str) -> Storage: ...


def is_object_store(location: str) -> bool:
    """True if a location is an address in an object store."""
    return location.partition("://")[0] in SCHEMES and "://" in location


def place_of(location: str) -> tuple[str, str, str]:
    """Scheme, bucket and key of an address in an object store, as written."""
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    return scheme, bucket, key


def storage_for(location: str, options: Mapping[str, str] | None = None) -> Storage:
    """Storage rooted at `location`: a directory, or `s3://bucket/path`, `gs://...`, `az://...` with the store's `options`
    (docs/object-stores.md). Sends no request.

    Raises `OptionError` for a location without a storage, for options of a directory, and for unknown options.
    """
    if is_object_store(location):
        # Imported on use: tables in directories need not wait for the client.
        found: Storage = import_module("lakehouse_engine.storage.objects.store").ObjectStorage.at(location, options)
        return found
    scheme, is_uri, _ = location.partition("://")
    if is_uri and scheme != "file":
        raise OptionError(f"{location!r}: the engine has no storage for {scheme}://; there are directories, s3://, gs:// and az://")
    if options:
        raise OptionError(f"a directory has no storage_options ({', '.join(sorted(options))}): leave them out, or give a location like s3://...")
    return LocalStorage(location)


def storage_below(storage: Storage, path: str) -> Storage:
    """Storage rooted at a directory of another one; read-only if that one is."""
    if isinstance(storage, ReadOnlyStorage):
        return replace(storage, inner=storage_below(storage.inner, path))
    if isinstance(storage, Nesting):
        return storage.below(path)
    return storage_for(storage.uri(path), dict(options_of(storage)))


def options_of(storage: Storage) -> tuple[tuple[str, str], ...]:
    """Options with which a storage was opened, as pairs; empty for a directory."""
    inner = getattr(storage, "inner", storage)
    return tuple(getattr(inner, "options", ()))


def identity_of(storage: Storage) -> Hashable:
    """Identifies a storage in this process, with a path its files; None in memory, where two storages may have the same name."""
    if storage.local_path() is not None:
        return storage.root
    return (storage.root, options_of(storage)) if in_object_store(storage) else None


def has_file(storage: Directories, path: str) -> bool:
    """True if a file of that name exists, by the storage's cheapest request."""
    if in_object_store(storage):
        return storage.has_object(path)
    found = storage.head(path)
    return found is not None and not found.is_directory


def discard(storage: Storage, path: str) -> None:
    """Delete a file that need not exist, with one request if possible."""
    if in_object_store(storage):
        storage.delete_all([path])
    else:
        storage.delete(path)


def in_object_store(storage: Directories) -> TypeGuard[TaggedStorage]:
    """True if the storage holds objects, which are replaced by tag, have no second name, and cannot be moved."""
    return is_object_store(storage.root)
