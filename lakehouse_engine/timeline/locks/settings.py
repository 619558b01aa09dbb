"""A table's lock by its properties, and the providers that implement it."""

from __future__ import annotations

import os

from lakehouse_engine.errors import LockError, PropertiesError, StoredFileNotFoundError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import LOCK_PROVIDER, STORED_PREFIX, LockOptions
from lakehouse_engine.options.locks import FILE_LOCK_DIRECTORY, HUDI_FILE, IN_PROCESS, KERNEL, PROVIDERS, STORAGE, TABLES_LOCK
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.config_store import BACKUP, COPY, META_FOLDER, PROPERTIES, parse_config
from lakehouse_engine.timeline.locks.hudi_file import HudiFileLock
from lakehouse_engine.timeline.locks.mounts import mount_without_flock
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT, StorageLock

LOCK_KEYS = {name: option.key for option in TABLES_LOCK for name in (option.key, *option.aliases)}
"""Every name of an option that a table's writers share, and its key."""


def lock_properties(config: TableConfig) -> dict[str, str]:
    """What a table says about its lock, by key: under Hudi's option names, or as stored defaults of its writes.

    Raises `LockError` if the two contradict each other.
    """
    named = {LOCK_KEYS[key]: value for key, value in config.properties.items() if key in LOCK_KEYS}
    stored = {LOCK_KEYS[key]: value for key, value in config.prefixed(STORED_PREFIX).items() if key in LOCK_KEYS}
    for key in named.keys() & stored.keys():
        if named[key] != stored[key]:
            raise LockError(
                f"the table's properties say {key}={named[key]} and {STORED_PREFIX}{key}={stored[key]}: remove one of the two",
                table=config.name,
            )
    return {**named, **stored}


def lock_options(config: TableConfig) -> LockOptions:
    """Raises `LockError` and `OptionError` for impossible settings."""
    return LockOptions.read(lock_properties(config))


def stored_lock_options(storage: Storage, folder: str = "", instead: LockOptions | None = None) -> LockOptions:
    """Lock options of the table in `folder` of `storage`. If its properties are unreadable, those that this engine last stored; otherwise
    `instead`, of a new table: without properties only `repair` gets further than the lock.
    """
    found = (_stored(storage, f"{folder}/{path}" if folder else path) for path in (PROPERTIES, BACKUP, COPY))
    config = next((config for config in found if config is not None), None)
    return (instead or LockOptions()) if config is None else lock_options(config)


def _stored(storage: Storage, path: str) -> TableConfig | None:
    try:
        return parse_config(storage.read(path))
    except (StoredFileNotFoundError, PropertiesError):
        return None


def check_kernel_lock_is_kept(storage: Storage, path: str, options: LockOptions) -> None:
    """Raise `LockError` if `path` is on a file system known not to keep `flock`, and no other lock is configured."""
    mount = mount_without_flock(path)
    if mount is None or options.provider in (KERNEL, IN_PROCESS, HUDI_FILE):
        return
    raise LockError(
        f"the table is on a file system ({mount.kind} at {mount.folder}) that does not keep the kernel's file lock among machines. Set the"
        f" table property {LOCK_PROVIDER.key} to {PROVIDERS}{HUDI_FILE} where several machines write it, to flock where all writers are on"
        f" this machine, or to {IN_PROCESS} where this process is the only one; or keep the table in another file system",
        table=storage.root,
    )


def storage_lock(storage: Storage, file: str, options: LockOptions) -> StorageLock | None:
    """Lock object for the lock `file` in an object store. Raises `LockError` if one is configured for a directory."""
    check_provider_fits(storage, options)
    if not in_object_store(storage):
        return None
    folder, (place, _, name) = table_folder(file), file.rpartition("/")
    path = f"{place}/{LOCK_OBJECT.rpartition('/')[2]}" if name == "table.lock" else file
    return StorageLock(storage, path, options, f"{storage.root}/{folder}" if folder else storage.root)


def table_folder(file: str) -> str:
    """Directory, in its storage, of the table with the lock `file`."""
    return file.rpartition(f"{META_FOLDER}/")[0].rstrip("/")


def check_provider_fits(storage: Storage, options: LockOptions) -> None:
    """Raise `LockError` for a lock that a table in `storage` cannot have."""
    if options.provider == STORAGE and not in_object_store(storage):
        raise LockError(
            f"{LOCK_PROVIDER.key}={STORAGE} is for tables in object stores, and this one is in a directory: name {PROVIDERS}{HUDI_FILE}, or"
            " none where only this engine writes",
            table=storage.root,
        )


def hudi_file_lock(storage: Storage, folder: str, options: LockOptions) -> HudiFileLock | None:
    """Hudi's lock file of the table in `folder` of `storage`; None if the table has another lock. Raises `LockError`."""
    if options.provider != HUDI_FILE:
        return None
    table = f"{storage.root}/{folder}" if folder else storage.root
    if not options.directory:
        return HudiFileLock(storage, f"{folder}/{META_FOLDER}" if folder else META_FOLDER, options, table)
    # Hadoop resolves a path without a scheme against its default file system, and a relative one against the JVM's directory.
    local = options.directory.removeprefix("file:")
    if not os.path.isabs(local) or "://" in local:
        raise LockError(
            f"{FILE_LOCK_DIRECTORY.key}={options.directory} must be an absolute path in the local file system (or a file: URI), the same"
            " for all writers",
            table=table,
        )
    return HudiFileLock(LocalStorage(options.directory), "", options, table)
