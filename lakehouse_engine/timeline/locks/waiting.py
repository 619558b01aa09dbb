"""Who waits for a lock: a file of each that waits for more than a moment, for those who look (`lakehouse writers`)."""

from __future__ import annotations

import logging
import socket
import uuid

from lakehouse_engine.errors import StorageError, StoredFileNotFoundError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.locks.holder import Holder, describe_self, is_running, parse_holder

logger = logging.getLogger(__name__)

FOLDER = "waiting"
"""Beside the lock file."""


class Waiting:
    """This thread, waiting for the lock in `file`. Whether others can be told is no part of the lock."""

    def __init__(self, storage: Storage, file: str) -> None:
        self._storage = storage
        self._path = f"{_folder(file)}/{uuid.uuid4().hex}"
        self._told = False

    def tell(self) -> None:
        """Say so, once."""
        if self._told:
            return
        self._told = True
        try:
            self._storage.create(self._path, describe_self().encode())
        except StorageError as error:
            logger.info("nobody can be told that this waits for a lock: %s", error)

    def over(self) -> None:
        """The lock was had, or given up."""
        if not self._told:
            return
        try:
            self._storage.delete(self._path)
        except StorageError as error:
            logger.info("it cannot be told that this does not wait any more: %s", error)


def waiting_for(storage: Storage, file: str) -> list[Holder]:
    """Who waits for the lock in `file`; processes of this machine that were killed meanwhile do not count."""
    found = []
    for entry in storage.list(_folder(file)):
        text = _text(storage, entry.path)
        holder = parse_holder(text) if text else Holder()
        if holder.pid is not None and _may_be_there(holder.pid, holder.host):
            found.append(holder)
    return found


def forget_dead(storage: Storage, file: str) -> None:
    """Remove what processes of this machine left that were killed while they waited."""
    for entry in storage.list(_folder(file)):
        text = _text(storage, entry.path)
        holder = parse_holder(text) if text else Holder()
        if holder.pid is not None and not _may_be_there(holder.pid, holder.host):
            storage.delete(entry.path)


def _folder(file: str) -> str:
    return f"{file.rpartition('/')[0]}/{FOLDER}"


def _text(storage: Storage, path: str) -> str | None:
    try:
        return storage.read(path).decode("utf-8", "replace")
    except StoredFileNotFoundError:
        return None


def _may_be_there(pid: int, host: str | None) -> bool:
    return host != socket.gethostname() or is_running(pid)
