"""Rows for sessions whose executors are threads of this machine, as Parquet files: Spark reads of them the columns that a query needs.
Arrow data travels in the tasks of every query, all columns of it (docs/adr/0037).

The files are in a folder of the application's, which Spark removes when it ends. None is removed before: a query that was made of a frame
needs its file for as long as somebody holds the query, and nobody tells. So an application gets so many bytes of them, and no more.
"""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.spark.frames.partitions import as_path
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.settings import AS_STORED
from lakehouse_engine.storage.local import LocalStorage

logger = logging.getLogger(__name__)
_LEAST, _MOST = 1 << 20, 1 << 30
"""Bytes of rows that are worth a file, and of all files of an application."""
_ROW_GROUP = 1 << 16
"""Rows of a group, which is the least that a task reads."""
_ENCRYPTED = "spark.io.encryption.enabled"

_written: dict[str, int] = {}
_lock = Lock()


def file_frame(spark: SparkSession, rows: pa.Table) -> DataFrame | None:
    """The rows as a frame over a file; None where they are few, have nested columns, or there is no room for them.

    For sessions with a SparkContext and executors in this process's machine.
    """
    if rows.nbytes < _LEAST or any(pat.is_nested(field.type) for field in rows.schema) or _encrypts(spark):
        return None
    application = str(spark.sparkContext.applicationId)
    if not _has_room(application, rows.nbytes):
        return None
    path = Path(SparkFiles.getRootDirectory()) / f"lakehouse-rows-{uuid.uuid4()}.parquet"
    # Names may be equal, or differ in case only: columns are found by their place.
    numbered = rows.rename_columns([f"c{number}" for number in range(rows.num_columns)])
    try:
        pq.write_table(numbered, path, _ROW_GROUP, use_dictionary=False, compression="none", write_statistics=False, store_schema=False)
    except OSError as error:
        logger.warning("rows are kept in memory, not in %s, for the rest of the application: %s", path, error)
        path.unlink(missing_ok=True)
        _written[application] = _MOST
        return None
    reader = spark.read.schema(to_spark_schema(numbered.schema)).options(**AS_STORED)
    return reader.parquet(as_path(LocalStorage(str(path.parent)).uri(path.name))).toDF(*rows.column_names)


def _encrypts(spark: SparkSession) -> bool:
    """Whether the application's own files are to be encrypted, which these are not."""
    return str(spark.sparkContext.getConf().get(_ENCRYPTED, "false")).lower() == "true"


def _has_room(application: str, size: int) -> bool:
    """Whether an application may write so much more; if so that is counted."""
    with _lock:
        written = _written.get(application, 0) + size
        if written > _MOST:
            return False
        _written[application] = written
        return True
