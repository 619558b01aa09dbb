"""Deletes tables, and remains of tables, each under its own lock; never deletes a folder in use.

In a directory the table is renamed to a hidden name in one step and deleted there, so that a crash leaves no half table. An object store
cannot move it, so its properties are deleted first.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.places import NOTES, Place, take_apart, what_is_at
from lakehouse_engine.errors import LockError, TableNotFoundError
from lakehouse_engine.options import LOCK_PROVIDER, LockOptions
from lakehouse_engine.options.locks import KERNEL
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.at_rest import table_at_rest
from lakehouse_engine.timeline.lock import TableLock

COMMENTS = ".docs"
BEST_LOCK = LockOptions.read({LOCK_PROVIDER.key: KERNEL})
"""Lock of a place without properties, which would otherwise say which lock to use."""


def take_away(storage: Storage, name: RelationName, is_still: Callable[[], bool], *, lock_timeout_ms: int) -> bool:
    """Delete a table's place and its comments; False, with nothing changed, if `is_still` is false under the lock.

    Raises `LockTimeoutError` naming the process at work, `LockError` if the lock was lost, and `TableNotFoundError` if another process
    removed it during the wait.
    """
    away = f"{name.schema}/{NOTES}/{uuid.uuid4().hex}"
    with table_at_rest(storage, name.path, lock_timeout_ms=lock_timeout_ms, instead=BEST_LOCK) as lock:
        if not is_still():
            return False
        check_held(lock, name)
        storage.delete(comments_of(name))
        if in_object_store(storage):
            take_apart(storage, name)
        else:
            storage.rename_tree(name.path, away)
    if not in_object_store(storage):
        empty_bin(storage, name.schema)
    return True


def make_room(storage: Storage, name: RelationName, *, lock_timeout_ms: int) -> None:
    """Delete what writers left in a free place to which a table moves. Raises `LockTimeoutError` naming the process at work."""
    if storage.head(name.path) is None:
        return
    with suppress(TableNotFoundError):  # only empty directories are left
        take_away(storage, name, lambda: what_is_at(storage, name.path) is Place.FREE, lock_timeout_ms=lock_timeout_ms)
    storage.delete_empty(name.path)


def check_held(lock: TableLock, name: RelationName) -> None:
    """Raise `LockError` if the lock was lost: another process may have changed the table since."""
    if not lock.confirm():
        raise LockError(f"the lock of {name} was lost while it was held, and nothing is changed; try again", table=name)


def empty_bin(storage: Storage, schema: str) -> None:
    """Delete what was moved out of a schema, including by processes that died before they deleted it."""
    for entry in storage.list(f"{schema}/{NOTES}"):
        storage.delete_tree(entry.path)


def comments_of(name: RelationName) -> str:
    """File with the comments of a table or view."""
    return f"{name.schema}/{COMMENTS}/{name.name}.json"
