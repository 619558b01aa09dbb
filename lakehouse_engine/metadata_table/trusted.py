"""Opens a metadata table whose answers can be trusted: it is in use, has the partition, and knows every change of its data table."""

from __future__ import annotations

from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX, data_partition
from lakehouse_engine.metadata_table.table import MetadataTable, is_in_use
from lakehouse_engine.view.table_state import TableState


def trusted_metadata_table(data: TableState, partition: str) -> MetadataTable:
    """The metadata table of `data`, for questions to one of its partitions.

    Raises `UnavailableError` with the reason if it cannot be asked, and other `LakehouseError`s if it cannot be read.
    """
    if not is_in_use(data):
        raise UnavailableError("the table has no metadata table", partition=partition)
    if partition not in data.config.metadata_partitions:
        raise UnavailableError(f"the metadata table has no partition {partition}", partition=partition)
    table = MetadataTable.open(data)
    behind = unknown_instants(table)
    if behind:
        raise UnavailableError(f"the metadata table does not know of {behind[0]}", partition=partition)
    return table


def is_by_partition(table: MetadataTable) -> bool:
    """True if the record index has file groups for each partition of the data table, so that a key may be in several partitions."""
    return any(data_partition(piece.file_id) is not None for piece in table.groups(RECORD_INDEX))
