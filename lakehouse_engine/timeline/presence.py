"""Whether a table is there (still): others may drop, rename or replace it while it is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    FormatError,
    LockError,
    LockTimeoutError,
    StorageError,
    TableNotFoundError,
    TaskError,
    TimelineError,
)
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import has_file, in_object_store
from lakehouse_engine.timeline.config_store import BACKUP, PROPERTIES

_SYMPTOMS = (StorageError, TimelineError, FormatError, LockError, TaskError)
"""Errors as which a vanished table shows: a file, an instant or the lock is missing."""


def gone(storage: Storage) -> TableNotFoundError:
    """The error for a table that is not there any more."""
    return TableNotFoundError(
        f"there is no Hudi table at {storage.root} (any more): it was dropped or renamed, or never made", path=storage.root
    )


def check_there(storage: Storage, listing: Iterable[StoredFile]) -> None:
    """Raise `TableNotFoundError` where the table went before its meta folder was listed, or meanwhile.

    A listing of an object store is of one moment, and the properties, which are deleted first, are in it: no request is made.
    """
    if in_object_store(storage) and any(entry.path in (PROPERTIES, BACKUP) for entry in listing):
        return
    if not _has_properties(storage):
        raise gone(storage)


@contextmanager
def told_if_gone(storage: Storage) -> Iterator[None]:
    """Raise `TableNotFoundError` in place of errors of the body that come from the table being gone.

    Unknown outcomes of commits and timeouts of locks are raised as they are.
    """
    try:
        yield
    except (CommitOutcomeUnknownError, LockTimeoutError):
        raise
    except _SYMPTOMS as error:
        if _is_gone(storage):
            raise gone(storage) from error
        raise


def _is_gone(storage: Storage) -> bool:
    try:
        return not _has_properties(storage)
    except StorageError:
        return False


def _has_properties(storage: Storage) -> bool:
    """The properties are looked for twice: whoever replaces them may be between the two files."""
    return any(has_file(storage, path) for path in (PROPERTIES, BACKUP, PROPERTIES))
