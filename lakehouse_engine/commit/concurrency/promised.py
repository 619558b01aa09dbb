"""Stores a commit's completion time before it is created, so that recovery of a dead process finds it.

In versions 8 and 9 the time is part of the completed file's name, and the file may arrive late in an object store
(`commit.fence_lost_commit`): only an object of the same name keeps it out. So the time is written before the first attempt, and does not
change.
"""

from __future__ import annotations

from lakehouse_engine.errors import StoredFileNotFoundError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard, in_object_store

PROMISED = ".completes"


def promise_completion(storage: Storage, instant_time: str, completed_at: str) -> str:
    """Completion time of the instant: the promised one, else `completed_at`, which is promised now."""
    if not in_object_store(storage):
        return completed_at
    promised = promised_completion(storage, instant_time)
    if promised is None:
        storage.create(_path(instant_time), completed_at.encode())
    return promised or completed_at


def promised_completion(storage: Storage, instant_time: str) -> str | None:
    """Promised completion time; None if no commit of the instant can be under way."""
    try:
        return storage.read(_path(instant_time)).decode()
    except StoredFileNotFoundError:
        return None


def forget_promise(storage: Storage, instant_time: str) -> None:
    """Called once the instant is completed or taken back."""
    if in_object_store(storage):
        discard(storage, _path(instant_time))


def _path(instant_time: str) -> str:
    return f"{TEMP_FOLDER}/{instant_time}{PROMISED}"
