"""Writers of the blocks in a log file. Its name has the instant of its slice; only its blocks name writers (hudi-format 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.errors import StoredFileNotFoundError
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.log.blocks import DATA_BLOCKS, BlockType, LogBlock
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.order import Order
from lakehouse_engine.storage.base import Storage

_ROWS = DATA_BLOCKS | {BlockType.DELETE}


@dataclass(frozen=True, slots=True)
class LogOwners:
    """`writers`: instants with complete data or delete blocks. `takes_back`: (rollback, target) of each rollback block.

    A file with neither is empty or torn: its writer died before its first block was complete.
    """

    writers: frozenset[str] = frozenset()
    takes_back: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_torn(self) -> bool:
        return not self.writers and not self.takes_back

    def only(self, instant_time: str) -> bool:
        """True if the file holds nothing but what that instant wrote."""
        return not self.takes_back and self.writers.issubset({instant_time})

    def only_after(self, order: Order, instant_time: str) -> bool:
        """True if the file holds nothing but what was written after that instant."""
        return not self.takes_back and all(order.is_after(writer, instant_time) for writer in self.writers)


def log_owners(storage: Storage, log: LogFile) -> LogOwners:
    """Read a log file's headers, skipping contents. A CDC file has its writer in its name.

    Raises `StoredFileNotFoundError`.
    """
    if log.is_cdc:
        return LogOwners(frozenset({log.instant_time}))
    blocks = list(read_blocks(mapped(storage, log.path)))
    return LogOwners(
        frozenset(block.instant_time for block in blocks if block.type in _ROWS and block.instant_time),
        frozenset(pair for block in blocks if (pair := _taken_back(block)) is not None),
    )


def find_log_owners(storage: Storage, log: LogFile) -> LogOwners | None:
    """`log_owners`; None if the file is not there: it only had a marker, an earlier run deleted it, or it went since it was listed, as
    writers without the lock take back their own.
    """
    try:
        return log_owners(storage, log)
    except StoredFileNotFoundError:
        return None


def _taken_back(block: LogBlock) -> tuple[str, str] | None:
    if not block.is_rollback or block.target_instant_time is None:
        return None
    return block.instant_time or "", block.target_instant_time
