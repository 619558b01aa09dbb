"""Names of records and of file groups."""

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
"""A boolean user column with this name marks a row as a deletion."""
DELETED_AT = "_lakehouse_deleted_at"
"""The column of a table with soft deletes that says when a row was deleted; null in all others."""


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group: `partition_path` is relative to the table ("" when it has no partitions), `file_id` as in file names."""

    partition_path: str
    file_id: str

    def __post_init__(self) -> None:
        if not self.file_id or "_" in self.file_id or "/" in self.file_id:
            raise FileNameError(f"a file id is not empty and has neither '_' nor '/': {self.file_id!r}")
