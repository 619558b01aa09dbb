"""Detects a table that was dropped, renamed or replaced while it is read or written."""

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
"""Errors that a vanished table causes: a missing file, instant or lock."""


def gone(storage: Storage) -> TableNotFoundError:
    """Error for a table that no longer exists."""
    return TableNotFoundError(
        f"there is no Hudi table at {storage.root} (any more): it was dropped or renamed, or never made", path=storage.root
    )


def check_there(storage: Storage, listing: Iterable[StoredFile]) -> None:
    """Raise `TableNotFoundError` if the table disappeared before or while its meta folder was listed.

    An object store's listing is of one moment and includes the properties, which are deleted first: no request is made.
    """
    if in_object_store(storage) and any(entry.path in (PROPERTIES, BACKUP) for entry in listing):
        return
    if not _has_properties(storage):
        raise gone(storage)


@contextmanager
def told_if_gone(storage: Storage) -> Iterator[None]:
    """Raise `TableNotFoundError` instead of errors in the body that come from the table's disappearance.

    Unknown commit outcomes and lock timeouts are raised unchanged.
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
    """Looks for the properties twice: a process that replaces them may be between its two files."""
    return any(has_file(storage, path) for path in (PROPERTIES, BACKUP, PROPERTIES))
