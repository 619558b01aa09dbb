"""Temporary files of writers that were killed between writing and publishing. Nothing else reads or removes them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from lakehouse_engine.storage.base import Storage, StoredFile

logger = logging.getLogger(__name__)

DEAD_AFTER_MS = 3_600_000
"""Publishing takes moments. An older file's process is gone, even if it did not know the lock, or ran on another host."""


def dead_temporaries(storage: Storage, folder: str) -> list[StoredFile]:
    """Those directly in `folder` that no living process will publish."""
    before = time.time() * 1000 - DEAD_AFTER_MS
    return [entry for entry in storage.unpublished(folder) if entry.modified_ms < before]


def all_dead_temporaries(storage: Storage) -> Iterator[StoredFile]:
    """Those anywhere in the table; lists every directory."""
    pending = [""]
    while pending:
        folder = pending.pop()
        yield from dead_temporaries(storage, folder)
        pending += [entry.path for entry in storage.list(folder) if entry.is_directory]


def remove_temporaries(storage: Storage, entries: Iterator[StoredFile] | list[StoredFile]) -> None:
    """Called under the table lock."""
    for entry in entries:
        logger.info("removing %s of %s, which a killed process left", entry.path, storage.root)
        storage.delete(entry.path)
