"""The completion time of a commit that is about to be created, kept where who comes after a dead process finds it.

In versions 8 and 9 it is part of the name of the completed file, which may come late to an object store (`commit.ruling_out`): only an
object of the same name keeps it from coming. So the time is written before the first attempt to create the file, and stays what it is.
"""

from __future__ import annotations

from lakehouse_engine.errors import StoredFileNotFoundError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard, in_object_store

PROMISED = ".completes"


def promise_completion(storage: Storage, instant_time: str, completed_at: str) -> str:
    """The time at which the instant is to be completed: `completed_at`, or what was promised before."""
    if not in_object_store(storage):
        return completed_at
    promised = promised_completion(storage, instant_time)
    if promised is None:
        storage.create(_path(instant_time), completed_at.encode())
    return promised or completed_at


def promised_completion(storage: Storage, instant_time: str) -> str | None:
    """None where no commit of the instant can be on its way."""
    try:
        return storage.read(_path(instant_time)).decode()
    except StoredFileNotFoundError:
        return None


def forget_promise(storage: Storage, instant_time: str) -> None:
    """To be called once the instant is completed or taken back."""
    if in_object_store(storage):
        discard(storage, _path(instant_time))


def _path(instant_time: str) -> str:
    return f"{TEMP_FOLDER}/{instant_time}{PROMISED}"
