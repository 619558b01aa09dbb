"""The grammar of base file, log file and marker names (hudi-format sections 4, 5.1 and 11; Hudi `FSUtils`, `WriteMarkers`)."""

from __future__ import annotations

import re
import uuid

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import FileNameError
from lakehouse_engine.model.files import BaseFile, LogFile

PARTITION_METAFILE = ".hoodie_partition_metadata"
TEMP_FOLDER = ".hoodie/.temp"

# Explicit digits: `\d` matches digits of every script, which would not print back.
_TOKEN = r"[0-9]+-[0-9]+-[0-9]+"
_BASE_FILE = re.compile(rf"([^_/.][^_/]*)_({_TOKEN})_([0-9]+)(\.(?:parquet|orc|hfile|lance))")
_LOG_FILE = re.compile(rf"\.([^_/]+)_([0-9]+)\.log\.(0|[1-9][0-9]*)(?:_({_TOKEN})(\.cdc)?)?")


_DIGITS = 8
_BUCKET = re.compile(rf"([0-9]{{{_DIGITS}}})-.+")
_MOST_BUCKETS = 100_000
"""Share of random UUIDs that start with a number below this: one in forty thousand."""
_FILE_IDS = uuid.UUID("6f1d9c2e-3b57-5c0a-9a44-8e2b7d5f0c61")
"""UUID namespace of file ids."""


class MarkerType(StrEnum):
    """The kind of write that a marker announces for a file (Hudi `IOType`)."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


def parse_base_file(partition_path: str, name: str, size: int = -1) -> BaseFile:
    """Parse `<file_id>_<write_token>_<instant>.<parquet|orc|hfile|lance>`; `size` in bytes. Raises `FileNameError`."""
    match = _BASE_FILE.fullmatch(name)
    if match is None:
        raise FileNameError(f"{name!r} is no base file name: expected <fileId>_<writeToken>_<instant>.parquet", partition=partition_path)
    file_id, token, instant_time, extension = match.groups()
    return BaseFile(partition_path, file_id, token, instant_time, extension, size)


def parse_log_file(partition_path: str, name: str, size: int = -1) -> LogFile:
    """Parse `.<file_id>_<base_instant>.log.<version>[_<write_token>[.cdc]]`; `size` in bytes. Raises `FileNameError`."""
    match = _LOG_FILE.fullmatch(name)
    if match is None:
        raise FileNameError(
            f"{name!r} is no log file name: expected .<fileId>_<baseInstant>.log.<version>_<writeToken>", partition=partition_path
        )
    file_id, base_instant, version, token, suffix = match.groups()
    return LogFile(partition_path, file_id, base_instant, int(version), token, suffix or "", size)


def file_id_of(name: str) -> str:
    """File id in a row's `_hoodie_file_name`: base files store their own name there, logs the file id (Hudi `HoodieAppendHandle`)."""
    match = _BASE_FILE.fullmatch(name)
    return name if match is None else match.group(1)


def group_in(name: str) -> str:
    """The file id that a data file's name begins with. Much cheaper than parsing; of another name it is a text without meaning."""
    return name.removeprefix(".").partition("_")[0]


def is_base_file_name(name: str) -> bool:
    """True if the name, without a folder, is a base file's."""
    return _BASE_FILE.fullmatch(name) is not None


def is_log_file_name(name: str) -> bool:
    """True if the name, without a folder, is a log file's."""
    return _LOG_FILE.fullmatch(name) is not None


def new_file_id(instant_time: str, partition_path: str, number: int) -> str:
    """File id of the `number`th new file group of a commit: a UUID, then the number of the file that the task rolled to, always 0 here.

    The same arguments give the same id, so two attempts of one task write files of the same group, and rows do not appear twice.
    """
    return f"{uuid.uuid5(_FILE_IDS, f'{instant_time}/{number}/{partition_path}')}-0"


def bucket_file_id(bucket: int, instant_time: str, partition_path: str) -> str:
    """File id of a new group of a BUCKET index: a UUID whose first eight characters are the bucket's number, then `-0` (Hudi
    `BucketIdentifier`).
    """
    return f"{bucket:0{_DIGITS}d}{new_file_id(instant_time, partition_path, bucket)[_DIGITS:]}"


def bucket_of(file_id: str) -> int | None:
    """Bucket of a file group; None for a file id without one."""
    match = _BUCKET.fullmatch(file_id)
    return None if match is None else int(match[1])


def has_bucket(file_id: str) -> bool:
    """True if a file group of a table without a stored index type belongs to a bucket."""
    bucket = bucket_of(file_id)
    return bucket is not None and bucket < _MOST_BUCKETS


def write_token(partition: int, stage: int, attempt: int) -> str:
    """Name of one attempt of one task: `<task partition>-<stage>-<task attempt>`, numbers not negative."""
    if min(partition, stage, attempt) < 0:
        raise FileNameError(f"a write token has no negative numbers: {partition}-{stage}-{attempt}")
    return f"{partition}-{stage}-{attempt}"


def marker_folder(instant_time: str) -> str:
    """The folder of an instant's markers, relative to the table."""
    return f"{TEMP_FOLDER}/{instant_time}"


def marker_path(instant_time: str, data_file_path: str, kind: MarkerType) -> str:
    """The marker (type DIRECT, an empty file) of a data file; both paths relative to the table."""
    return f"{marker_folder(instant_time)}/{data_file_path}.marker.{kind}"


def parse_marker_path(instant_time: str, marker_path: str) -> tuple[str, MarkerType]:
    """Data file path and kind of a marker below `marker_folder(instant_time)`. Raises `FileNameError`."""
    folder = f"{marker_folder(instant_time)}/"
    data_file_path, separator, kind = marker_path.rpartition(".marker.")
    if not separator or not data_file_path.startswith(folder) or len(data_file_path) == len(folder):
        raise FileNameError(f"{marker_path!r} is no marker of {instant_time}: expected {folder}<data file>.marker.<kind>")
    try:
        return data_file_path[len(folder) :], MarkerType(kind)
    except ValueError as error:
        raise FileNameError(f"{marker_path!r} has an unknown marker kind {kind!r}: expected CREATE, MERGE or APPEND") from error
