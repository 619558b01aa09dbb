"""Data files, and the slices and groups that they form."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.model.keys import FileGroupId


def join_path(partition_path: str, name: str) -> str:
    """Path of a file relative to the table; `partition_path` may be empty."""
    return f"{partition_path}/{name}" if partition_path else name


@dataclass(frozen=True, slots=True)
class BaseFile:
    """`<file_id>_<write_token>_<instant_time>.parquet` in a partition; `size` in bytes (-1 if not listed)."""

    partition_path: str
    file_id: str
    write_token: str
    instant_time: str
    extension: str = ".parquet"
    size: int = -1

    @property
    def name(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}{self.extension}"

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return join_path(self.partition_path, self.name)


@dataclass(frozen=True, slots=True)
class LogFile:
    """`.<file_id>_<instant_time>.log.<version>[_<write_token>][.cdc]`; in table version 6 that instant is the slice's, in 8 and 9 the delta
    commit's that wrote the file.
    """

    partition_path: str
    file_id: str
    instant_time: str
    version: int
    write_token: str | None = None
    suffix: str = ""
    size: int = -1

    @property
    def name(self) -> str:
        token = f"_{self.write_token}" if self.write_token is not None else ""
        return f".{self.file_id}_{self.instant_time}.log.{self.version}{token}{self.suffix}"

    @property
    def path(self) -> str:
        return join_path(self.partition_path, self.name)

    @property
    def is_cdc(self) -> bool:
        return self.suffix == ".cdc"


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A version of a file group: an optional base file and the logs on it (other writers leave log-only slices)."""

    group: FileGroupId
    base_instant: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()

    @property
    def partition_path(self) -> str:
        return self.group.partition_path

    @property
    def file_id(self) -> str:
        return self.group.file_id

    @property
    def size(self) -> int:
        """Size of all its files in bytes."""
        return (self.base_file.size if self.base_file else 0) + sum(log.size for log in self.log_files)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Every committed slice of one group, newest first."""

    group: FileGroupId
    slices: tuple[FileSlice, ...]
