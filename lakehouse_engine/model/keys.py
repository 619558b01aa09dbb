"""Names of records, meta columns and file groups."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.errors import FileNameError

RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
FILE_NAME = "_hoodie_file_name"
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The five meta columns, in the order in which every base file has them."""
IS_DELETED = "_hoodie_is_deleted"
"""Name of a boolean user column that marks a row as a deletion."""
DELETED_AT = "_lakehouse_deleted_at"
"""Column with the time of a row's deletion in a table with soft deletes; null in all other rows."""


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """Identifies a file group: `partition_path` is relative to the table ("" if not partitioned), `file_id` as in file names."""

    partition_path: str
    file_id: str

    def __post_init__(self) -> None:
        if not self.file_id or "_" in self.file_id or "/" in self.file_id:
            raise FileNameError(f"a file id is not empty and has neither '_' nor '/': {self.file_id!r}")
