"""Opens a metadata table whose answers can be trusted: it is in use, has the partition, and knows every change of its data table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lakehouse_engine.errors import LakehouseError, UnavailableError
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX, data_partition
from lakehouse_engine.metadata_table.table import MetadataTable, is_in_use
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


def trusted_metadata_table(data: TableState, partition: str) -> MetadataTable:
    """The metadata table of `data`, for questions to one of its partitions.

    Raises `UnavailableError` with the reason if it cannot be asked, and other `LakehouseError`s if it cannot be read.
    """
    return Trusted(data).table(partition)


@dataclass(slots=True)
class Trusted:
    """The metadata table of one state of a table, opened when it is first asked, for all who ask. Not for several threads."""

    data: TableState
    _opened: MetadataTable | None = field(default=None, repr=False)
    _refused: LakehouseError | None = field(default=None, repr=False)
    _warned: bool = field(default=False, repr=False)

    def has(self, partition: str) -> bool:
        """True if the table's properties name the partition. Opens nothing."""
        return is_in_use(self.data) and partition in self.data.config.metadata_partitions

    def table(self, partition: str) -> MetadataTable:
        """Raises as `trusted_metadata_table`."""
        if not is_in_use(self.data):
            raise UnavailableError("the table has no metadata table", partition=partition)
        if partition not in self.data.config.metadata_partitions:
            raise UnavailableError(f"the metadata table has no partition {partition}", partition=partition)
        if self._refused is not None:
            raise self._refused
        if self._opened is None:
            try:
                self._opened = self._open(partition)
            except LakehouseError as error:
                self._refused = error
                raise
        return self._opened

    def answer(self, partition: str, ask: Callable[[MetadataTable], Answer]) -> Answer | None:
        """What `ask` finds in the metadata table. None if it has no such partition, or, with a warning, if it cannot be believed or read:
        the files of the table say the same.
        """
        if not self.has(partition):
            return None
        try:
            return ask(self.table(partition))
        except LakehouseError as error:
            self.warn(partition, error)
            return None

    def warn(self, partition: str, error: LakehouseError) -> None:
        """Say once why the metadata table is not used."""
        if not self._warned:
            self._warned = True
            name, root = self.data.config.name, self.data.storage.root
            logger.warning("%s in the metadata table of %s (%s) is not used: %s", partition, name, root, error.message)

    def _open(self, partition: str) -> MetadataTable:
        table = MetadataTable.open(self.data)
        behind = unknown_instants(table)
        if behind:
            raise UnavailableError(f"the metadata table does not know of {behind[0]}", partition=partition)
        return table


def is_by_partition(table: MetadataTable) -> bool:
    """True if the record index has file groups for each partition of the data table, so that a key may be in several partitions."""
    return any(data_partition(piece.file_id) is not None for piece in table.groups(RECORD_INDEX))
