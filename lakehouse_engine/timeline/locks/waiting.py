"""Processes that wait for a lock: each that waits for more than a moment writes a file (`lakehouse writers`)."""

from __future__ import annotations

import logging
import uuid

from lakehouse_engine.errors import StorageError, StoredFileNotFoundError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.locks.holder import Holder, parse_holder
from lakehouse_engine.timeline.processes import begin_work, end_work, may_be_at_work, parse_signature

logger = logging.getLogger(__name__)

FOLDER = "waiting"
"""Beside the lock file."""


class Waiting:
    """This thread, waiting for the lock in `file`. Failing to show it does not affect the lock."""

    def __init__(self, storage: Storage, file: str) -> None:
        self._storage = storage
        self._nonce = uuid.uuid4().hex
        self._path = f"{_folder(file)}/{self._nonce}"
        self._told = False

    def tell(self) -> None:
        """Write the file, once."""
        if self._told:
            return
        self._told = True
        try:
            self._storage.create(self._path, begin_work(self._nonce))
        except StorageError as error:
            logger.info("nobody can be told that this waits for a lock: %s", error)

    def over(self) -> None:
        """The lock was taken, or the wait given up."""
        if not self._told:
            return
        end_work(self._nonce)
        try:
            self._storage.delete(self._path)
        except StorageError as error:
            logger.info("it cannot be told that this does not wait any more: %s", error)


def waiting_for(storage: Storage, file: str) -> list[Holder]:
    """Processes waiting for the lock in `file`, without killed ones of this machine."""
    bodies = (_body(storage, entry.path) for entry in storage.list(_folder(file)))
    return [parse_holder(body.decode()) for body in bodies if (known := parse_signature(body)) and may_be_at_work(known)]


def forget_dead(storage: Storage, file: str) -> None:
    """Remove files of processes of this machine that were killed while they waited."""
    for entry in storage.list(_folder(file)):
        if not may_be_at_work(parse_signature(_body(storage, entry.path))):
            storage.delete(entry.path)


def _folder(file: str) -> str:
    return f"{file.rpartition('/')[0]}/{FOLDER}"


def _body(storage: Storage, path: str) -> bytes:
    try:
        return storage.read(path)
    except StoredFileNotFoundError:
        return b""
