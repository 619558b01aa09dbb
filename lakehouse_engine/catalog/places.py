"""Creates and drops tables in object stores, which cannot move directories.

A table exists as long as its `hoodie.properties` do: they are the last object of a table that is filled before it is visible, and the first
to be deleted. Files left in the place must not be found by the next table of that name, which would adopt their timeline. So a note in the
schema's `.dropped` folder says that the place is not empty, and the next process that wants the place deletes its content first. All of
this, and making an empty table, happens under the lock of the place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from lakehouse_engine.catalog.names import RelationName, taken_meanwhile
from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import LakehouseError, StorageError, StoredFileExistsError, TableExistsError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage, TaggedStorage
from lakehouse_engine.storage.locations import discard, has_file, in_object_store, storage_below
from lakehouse_engine.timeline.config_store import BACKUP, COPY, META_FOLDER, PROPERTIES, ConfigStore
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.timeline.locks.hudi_file import LOCK_NAME
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT

logger = logging.getLogger(__name__)

NOTES = ".dropped"
_LEFT = (LOCK_FILE.rpartition("/")[0], TEMP_FOLDER, HEARTBEATS)
"""Folders that writers may leave behind when their table is dropped: locks, staged rows, heartbeats. They are not part of a table."""
_MOST_LEFT = 1000


def take_apart(storage: TaggedStorage, name: RelationName) -> None:
    """Delete a table with all its files. The caller holds its lock, which is removed too.

    The table is gone for all readers with its properties; a crash after that leaves files, and the note about them.
    """
    storage.overwrite(_note(name), b"{}")
    # A process that finds no properties reads the other two.
    for path in (BACKUP, COPY, PROPERTIES):
        storage.delete(f"{name.path}/{path}")
    _leave(storage, name)


@contextmanager
def made_in_place(storage: Storage, name: RelationName, *, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default) -> Iterator[None]:
    """Holds a claimed place while the properties of an empty table are made.

    Raises `LockTimeoutError` while another process fills it, and `TableExistsError` if it was filled since.
    """
    if not in_object_store(storage):
        yield
        return
    with _locked(storage, name, lock_timeout_ms):
        _make_free(storage, name)
        yield


def fill_in_place(
    storage: TaggedStorage, name: RelationName, fill: Callable[[Storage], WriteResult], *, lock_timeout_ms: int
) -> WriteResult:
    """Let `fill` make a table in a claimed place, with one commit; it is visible to others afterwards.

    On failure a note is left, after a crash files: the next process that wants the place clears it. Raises what `fill` does,
    `LockTimeoutError` while a process works in that place, `TableExistsError` if a table is there or was made by a program without these
    locks, and `LockError` if the lock was lost.
    """
    with _locked(storage, name, lock_timeout_ms) as lock:
        _make_free(storage, name)
        check_vacant(storage, name)
        storage.overwrite(_note(name), b"{}")
        place = storage_below(storage, name.path)
        # Imported on use, like in `storage_for`.
        held = import_module("lakehouse_engine.storage.objects.held").HeldStorage.of(place, (PROPERTIES, BACKUP, COPY))
        try:
            result = fill(held)
            lock.confirm()
        except BaseException:
            _take_back(storage, name, lock)
            raise
        _name(place, held.read(PROPERTIES), name, result.instant)
        _forget(storage, name)
        return result


class Place(StrEnum):
    """Content of the place of a new table."""

    FREE = "free"
    """Nothing, or only what writers left that met a drop."""
    TABLE = "table"
    REMAINS = "remains"
    """A table without properties: half of it was deleted, or its properties were."""
    FOREIGN = "foreign"
    """Something that never was a table."""


def what_is_at(storage: Storage, place: str) -> Place:
    """Content of a place, from what is on storage."""
    if has_file(storage, f"{place}/{PROPERTIES}"):
        return Place.TABLE
    if _is_vacant(storage, place):
        return Place.FREE
    return Place.FOREIGN if storage.head(f"{place}/{META_FOLDER}") is None else Place.REMAINS


def check_vacant(storage: Storage, name: RelationName) -> None:
    """Raise `TableExistsError` if the place holds something that no note mentions."""
    found = what_is_at(storage, name.path)
    if found is Place.TABLE:
        raise taken_meanwhile(name)
    if found is Place.REMAINS:
        raise TableExistsError(
            f"{name.path} holds what is left of a table without {PROPERTIES}: `repair` puts them back where it can, dropping the table"
            " deletes what is left",
            table=name,
        )
    if found is not Place.FREE:
        raise TableExistsError(f"there is a directory or file {name.path} that is no table; move it away first", table=name)


def _is_vacant(storage: Storage, place: str) -> bool:
    left = tuple(f"{place}/{folder}/" for folder in _LEFT)
    if in_object_store(storage):
        found = storage.walk_up_to(place, _MOST_LEFT)
        return found is not None and all(entry.path.startswith(left) for entry in found)
    entry = storage.head(place)
    if entry is None or not entry.is_directory:
        return entry is None
    if any(entry.name != META_FOLDER for entry in storage.list(place)):
        return False
    below = (entry.path if entry.path.endswith(f"/{LOCK_NAME}") else f"{entry.path}/" for entry in storage.list(f"{place}/{META_FOLDER}"))
    return all(path in (*left, f"{place}/{META_FOLDER}/{LOCK_NAME}") for path in below)


def clear_place(storage: Storage, name: RelationName, *, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default) -> None:
    """Finish an interrupted drop where a new table will be. Raises `LockTimeoutError` while a process works there."""
    if not in_object_store(storage) or not has_file(storage, _note(name)):
        return
    with _locked(storage, name, lock_timeout_ms):
        if not has_file(storage, _note(name)):
            return
        if not has_file(storage, f"{name.path}/{PROPERTIES}"):
            _leave(storage, name)
        else:
            storage.delete(_note(name))  # interrupted before anything was deleted, or after everything was made


def clear_schema(storage: Storage, schema: str, *, lock_timeout_ms: int) -> None:
    """`clear_place` for every place of a schema that has a note."""
    for entry in storage.list(f"{schema}/{NOTES}") if in_object_store(storage) else ():
        clear_place(storage, RelationName(schema, entry.name.removesuffix(".json")), lock_timeout_ms=lock_timeout_ms)


def _locked(storage: Storage, name: RelationName, timeout_ms: int) -> TableLock:
    return TableLock(storage_below(storage, name.path), timeout_ms)


def _make_free(storage: TaggedStorage, name: RelationName) -> None:
    """Clear a claimed place; the caller holds its lock."""
    if has_file(storage, f"{name.path}/{PROPERTIES}"):
        raise taken_meanwhile(name)
    if has_file(storage, _note(name)):
        _empty(storage, name)


def _name(place: Storage, properties: bytes, name: RelationName, instant: str | None) -> None:
    """Publish the properties. If a table got there without the lock, the files of `instant` are deleted."""
    try:
        place.create(PROPERTIES, properties)
    except StoredFileExistsError as error:
        mine = [] if instant is None else [entry.path for entry in place.walk() if instant in entry.path]
        for path in mine:
            place.delete(path)
        raise taken_meanwhile(name) from error
    ConfigStore(place).keep_copy()


def _take_back(storage: TaggedStorage, name: RelationName, lock: TableLock) -> None:
    """Delete what was made. The note stays: an unanswered request may still arrive."""
    try:
        lock.confirm()
        _clear(storage, name)
        storage.delete(f"{name.path}/{LOCK_OBJECT}")
    except LakehouseError as error:
        logger.warning("what was made of %s could not be deleted (%s); the next table of that name does", name, error)


def _forget(storage: TaggedStorage, name: RelationName) -> None:
    """Remove the note of a published table; readers do not need its absence."""
    try:
        discard(storage, _note(name))
    except StorageError as error:
        logger.warning("the note that %s was about to be is left (%s)", name, error)


def _leave(storage: TaggedStorage, name: RelationName) -> None:
    """Empty a place, then delete its lock, which is held."""
    _empty(storage, name)
    storage.delete(f"{name.path}/{LOCK_OBJECT}")


def _empty(storage: TaggedStorage, name: RelationName) -> None:
    """Delete everything in a place without properties except the held lock, then the note."""
    _clear(storage, name)
    storage.delete(_note(name))


def _clear(storage: TaggedStorage, name: RelationName) -> None:
    lock = f"{name.path}/{LOCK_OBJECT}"
    storage.delete_all([entry.path for entry in storage.walk(name.path) if entry.path != lock])


def _note(name: RelationName) -> str:
    return f"{name.schema}/{NOTES}/{name.name}.json"
