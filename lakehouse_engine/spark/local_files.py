"""Rows as local Parquet files, for sessions whose executors are threads of this machine: Spark reads only needed columns, while Arrow data
would travel with all columns in the tasks of every query (docs/adr/0037).

The files are in a folder of the application, which Spark removes at its end. None is removed before, because a query needs its file for as
long as any code holds it. So an application gets a limited number of bytes.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.spark.frames.partitions import as_path
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.settings import AS_STORED, PARQUET
from lakehouse_engine.storage.local import LocalStorage

logger = logging.getLogger(__name__)
_LEAST, _MOST = 1 << 20, 1 << 30
"""Minimum bytes of rows for a file, and limit of all files of an application."""
_LINK = 1 << 13
"""Bytes that a link with its directory counts for."""
_ROW_GROUP = 1 << 16
"""Rows per row group, the least that a task reads."""
_ENCRYPTED = "spark.io.encryption.enabled"

_frames: WeakKeyDictionary[DataFrame, Path] = WeakKeyDictionary()
_applications: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
_written: dict[str, int] = {}
_lock = Lock()


def file_frame(spark: SparkSession, rows: pa.Table) -> DataFrame | None:
    """The rows as a frame over a file; None if they are few, have nested columns, or there is no room.

    For sessions with a SparkContext and executors on this machine.
    """
    if rows.nbytes < _LEAST or any(pat.is_nested(field.type) for field in rows.schema):
        return None
    # Names may be equal, or differ only in case: columns are addressed by position.
    numbered = rows.rename_columns([f"c{number}" for number in range(rows.num_columns)])

    def write(path: Path) -> None:
        pq.write_table(numbered, path, _ROW_GROUP, use_dictionary=False, compression="none", write_statistics=False, store_schema=False)

    written = _written_to(spark, f"lakehouse-rows-{uuid.uuid4()}.parquet", rows.nbytes, write)
    if written is None:
        return None
    reader = spark.read.format(PARQUET).schema(to_spark_schema(numbered.schema)).options(**AS_STORED)
    frame = reader.load(spark_path(written)).toDF(*rows.column_names)
    _frames[frame] = written
    return frame


def is_there(frame: DataFrame | None) -> bool:
    """True if the frame's file from `file_frame` still exists: cleaners of temporary folders remove files of sessions that live for weeks.
    """
    path = None if frame is None else _frames.get(frame)
    return path is None or path.exists()


def files_of(spark: SparkSession, contents: Sequence[bytes]) -> list[Path] | None:
    """Parquet files with these contents, alone in a folder, with unique names. None if there is no room.

    For sessions as in `file_frame`.
    """

    def names(folder: Path) -> list[Path]:
        return [folder / f"{folder.name}-{number}.parquet" for number in range(len(contents))]

    def write(folder: Path) -> None:
        folder.mkdir()
        for path, content in zip(names(folder), contents, strict=True):
            path.write_bytes(content)

    folder = _written_to(spark, f"lakehouse-logs-{uuid.uuid4()}", sum(map(len, contents)), write)
    return None if folder is None else names(folder)


def links_of(spark: SparkSession, places: Sequence[tuple[Path, str]]) -> Path | None:
    """A folder with links to files, each in its given directory. None if there is no room."""

    def write(folder: Path) -> None:
        for path, directory in places:
            (folder / directory).mkdir(parents=True, exist_ok=True)
            (folder / directory / path.name).symlink_to(path)

    return _written_to(spark, f"lakehouse-links-{uuid.uuid4()}", len(places) * _LINK, write)


def has_room(spark: SparkSession, size: int) -> bool:
    """True if the application may write that many more bytes."""
    return _written[_application(spark)] + size <= _MOST


def spark_path(path: Path) -> str:
    """Address of an application's file or folder for Spark."""
    return as_path(LocalStorage(str(path.parent)).uri(path.name))


def _written_to(spark: SparkSession, name: str, size: int, write: Callable[[Path], None]) -> Path | None:
    """Place in the application's folder where `write` wrote that many bytes; None if it may not or cannot."""
    application = _application(spark)
    if not _takes(application, size):
        return None
    path = Path(SparkFiles.getRootDirectory()) / name
    try:
        write(path)
    except OSError as error:
        logger.warning("rows are kept in memory, not in %s, for the rest of the application: %s", path, error)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        _written[application] = _MOST
        return None
    return path


def _application(spark: SparkSession) -> str:
    """Application id, asked once per session. If the session encrypts its own files, nothing may be written, because these are not
    encrypted.
    """
    application = _applications.get(spark)
    if application is None:
        application = _applications[spark] = str(spark.sparkContext.applicationId)
    if application not in _written:
        # Copying the whole configuration takes dozens of calls, so each application is asked once.
        with _lock:
            _written.setdefault(application, _MOST + 1 if _encrypts(spark) else 0)
    return application


def _encrypts(spark: SparkSession) -> bool:
    return str(spark.sparkContext.getConf().get(_ENCRYPTED, "false")).lower() == "true"


def _takes(application: str, size: int) -> bool:
    """Reserve that many bytes for an application, if it has room."""
    with _lock:
        written = _written[application] + size
        if written > _MOST:
            return False
        _written[application] = written
        return True
