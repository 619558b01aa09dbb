"""Whether a table is there (still): others may drop, rename or replace it while it is read or written."""

from __future__ import annotations

from collections.abc import Iterator
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
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.timeline.config_store import BACKUP, PROPERTIES

_SYMPTOMS = (StorageError, TimelineError, FormatError, LockError, TaskError)
"""What somebody is told whose table goes: a file is missing, or an instant, or the lock."""


def gone(storage: Storage) -> TableNotFoundError:
    """The error of who finds no table where one was."""
    return TableNotFoundError(
        f"there is no Hudi table at {storage.root} (any more): it was dropped or renamed, or never made", path=storage.root
    )


@contextmanager
def told_if_gone(storage: Storage) -> Iterator[None]:
    """Around work on a table: what fails in it because the table is gone fails with `TableNotFoundError`.

    An outcome that is not known stays unknown, and waiting for a lock in vain is told as that.
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
        return not has_file(storage, PROPERTIES) and not has_file(storage, BACKUP)
    except StorageError:
        return False
