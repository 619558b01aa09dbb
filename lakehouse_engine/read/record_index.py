"""Opens the record index of a metadata table where it has every row of the table."""

from __future__ import annotations

from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.format.file_names import is_log_file_name
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import trusted_metadata_table
from lakehouse_engine.model.commit_metadata import WRITER_KEY, HoodieCommitMetadata
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.view.table_state import TableState


def trusted_record_index(state: TableState) -> MetadataTable:
    """The metadata table, for questions to its record index.

    Raises `UnavailableError` with the reason if a row may be missing there, and as `trusted_metadata_table`.
    """
    table = trusted_metadata_table(state, RECORD_INDEX)
    check_logged_deletions(state)
    return table


def check_logged_deletions(state: TableState) -> None:
    """Raise `UnavailableError` if another program may have deleted rows in logs: the record index may lack keys then.

    Hudi takes a deleted key out of the index. If the key comes back by a write with another index than RECORD_INDEX, which finds the row
    below the log, Hudi counts it as an update in place, for which it writes nothing (0.15.0, 1.2.0).
    """
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return
    told = [(write, state.commit_metadata(write)) for write in state.timeline.completed().writes()]
    others = [(write, metadata) for write, metadata in told if WRITER_KEY not in metadata.extra_metadata]
    deleting = next((write for write, metadata in others if _deletes_in_logs(metadata)), None)
    if deleting is not None or (others and state.has_archive):
        raise UnavailableError(
            f"another program deleted rows in logs ({deleting or 'or may have, in archived commits'}), and the record index may lack keys"
            " that came back since",
            partition=RECORD_INDEX,
        )


def _deletes_in_logs(metadata: HoodieCommitMetadata) -> bool:
    return any(stat.num_deletes and is_log_file_name((stat.path or "").rpartition("/")[2]) for stat in metadata.write_stats())
