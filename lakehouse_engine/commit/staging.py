"""Folders for staged rows, beside the markers, each of one process and no instant. (New tables, and held-back ones, are staged likewise in
a folder of their schema or warehouse.)

A folder exists from before the table is locked until the write is done. It is named by a nonce, and a file beside it names its process; the
next write removes a folder whose process is gone, or that lacks this file.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lakehouse_engine.errors import StorageError, StoredFileNotFoundError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.config_store import META_FOLDER
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.timeline.presence import gone
from lakehouse_engine.timeline.processes import begin_work, end_work, is_at_work, is_of_this_machine, may_be_at_work, parse_signature

logger = logging.getLogger(__name__)

_PREFIX, _OWNER = "staged-", ".owner"
_DEAD_AFTER_MS = 24 * 3_600_000
"""Age at which a folder of another machine counts as left behind; its process cannot be checked. A longer write loses its rows, and fails.
"""


@dataclass(slots=True)
class StagingArea:
    """A folder in `home` for one process's work, such as the rows of one write; made on first use."""

    storage: Storage
    home: str = TEMP_FOLDER
    _nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    _is_made: bool = False

    def folder(self) -> str:
        """Path relative to the storage."""
        path = f"{self.home}/{_PREFIX}{self._nonce}"
        if not self._is_made:
            self._check_table()
            self._is_made = True
            self.storage.create(f"{path}{_OWNER}", begin_work(self._nonce))
        return path

    def _check_table(self) -> None:
        """Raise `TableNotFoundError` if making directories would bring back a dropped or renamed table."""
        of_table, in_directory = self.home == TEMP_FOLDER, self.storage.local_path() is not None
        if of_table and in_directory and self.storage.head(META_FOLDER) is None:
            raise gone(self.storage)

    def is_there(self) -> bool:
        """True if the folder was made and still belongs to this process, or was never needed."""
        return not self._is_made or self.storage.head(f"{self.folder()}{_OWNER}") is not None

    def remove(self) -> None:
        """Remove its content. Failures are logged; the next write removes the rest."""
        if not self._is_made:
            return
        path = self.folder()
        end_work(self._nonce)
        try:
            _remove(self.storage, path)
        except StorageError as error:
            logger.warning("what is staged in %s could not be removed (%s); who stages next does", path, error)


def dead_stages(storage: Storage, entries: Iterable[StoredFile], home: str = TEMP_FOLDER) -> Iterator[str]:
    """Folders of dead processes among the `entries` of `home`, the folder of temporary files."""
    staged = {entry.name.removesuffix(_OWNER): entry for entry in entries if entry.name.startswith(_PREFIX)}
    for name, entry in sorted(staged.items()):
        path = f"{home}/{name}"
        if not is_at_work(name.removeprefix(_PREFIX)) and _is_dead(storage, path, entry, home):
            yield path


def remove_dead_stages(storage: Storage, entries: Iterable[StoredFile], home: str = TEMP_FOLDER) -> None:
    """Remove `dead_stages`. For a table, its lock is held."""
    for path in dead_stages(storage, entries, home):
        logger.info("removing what a process which died staged in %s of %s", path, storage.root)
        _remove(storage, path)


def _remove(storage: Storage, path: str) -> None:
    storage.delete_tree(path)
    storage.delete(f"{path}{_OWNER}")


def _is_dead(storage: Storage, path: str, entry: StoredFile, home: str) -> bool:
    try:
        known = parse_signature(storage.read(f"{path}{_OWNER}"))
    except StoredFileNotFoundError:
        return True
    if is_of_this_machine(known):
        return not may_be_at_work(known)
    return storage_now_ms(storage, home) - entry.modified_ms > _DEAD_AFTER_MS
