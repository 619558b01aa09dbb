"""Tables that are dropped where no directory can be moved away first: in object stores.

A table is there as long as its `hoodie.properties` are, so they go first. What is deleted after them must not be found by a table that
gets the name: it would take the old timeline for its own. So a note in `.dropped` of the schema says that the place is not empty yet, and
whoever wants the place, and finds the note, deletes first what is there, under the lock of that place.
"""

from __future__ import annotations

from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage, TaggedStorage
from lakehouse_engine.storage.locations import has_file, in_object_store
from lakehouse_engine.timeline.config_store import BACKUP, COPY, PROPERTIES
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT

NOTES = ".dropped"


def take_apart(storage: TaggedStorage, name: RelationName) -> None:
    """Delete a table with all its files. The caller holds its lock, which is gone afterwards.

    It is gone for everyone with its properties; a crash after that leaves files, and the note of them.
    """
    storage.overwrite(_note(name), b"{}")
    # Whoever finds no properties reads the other two.
    for path in (BACKUP, COPY, PROPERTIES):
        storage.delete(f"{name.path}/{path}")
    _empty(storage, name)


def clear_place(storage: Storage, name: RelationName) -> None:
    """Finish what a crash cut off in the place of a table that shall be made. Raises `LockTimeoutError` while somebody is at work there."""
    if not in_object_store(storage) or not has_file(storage, _note(name)):
        return
    with TableLock(storage, LOCK_TIMEOUT_MS.default, file=f"{name.path}/{LOCK_FILE}"):
        if not has_file(storage, _note(name)):
            return
        if not has_file(storage, f"{name.path}/{PROPERTIES}"):
            _empty(storage, name)
        else:
            storage.delete(_note(name))  # cut off before anything was deleted


def clear_schema(storage: Storage, schema: str) -> None:
    """As `clear_place`, of every place of a schema that has a note."""
    for entry in storage.list(f"{schema}/{NOTES}") if in_object_store(storage) else ():
        clear_place(storage, RelationName(schema, entry.name.removesuffix(".json")))


def _empty(storage: TaggedStorage, name: RelationName) -> None:
    """Delete all files of a place without properties, then the note, then the lock that is held."""
    lock = f"{name.path}/{LOCK_OBJECT}"
    storage.delete_all([entry.path for entry in storage.walk(name.path) if entry.path != lock])
    storage.delete(_note(name))
    storage.delete(lock)


def _note(name: RelationName) -> str:
    return f"{name.schema}/{NOTES}/{name.name}.json"
