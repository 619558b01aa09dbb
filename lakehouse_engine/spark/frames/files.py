"""Files that are no table as a DataFrame."""

from __future__ import annotations

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.errors import UnreadableFilesError
from lakehouse_engine.options.files import FilesRead


def files_frame(spark: SparkSession, files: FilesRead) -> DataFrame:
    """The rows of files, as they are listed now. Raises `UnreadableFilesError` where there are none, or Spark cannot tell their columns."""
    reader = spark.read.format(files.format).options(**dict(files.options))
    try:
        rows = (reader if files.schema is None else reader.schema(files.schema)).load(files.path)
        _ = rows.schema  # Spark Connect resolves nothing before
    except PySparkException as error:
        raise _told(error, files) from error
    return rows


def _told(error: PySparkException, files: FilesRead) -> Exception:
    condition = error.getCondition() or ""
    where = f"{files.format} files {files.path}"
    if condition.startswith("PATH_NOT_FOUND"):
        return UnreadableFilesError(f"there are no {where}: correct the path, or put them there", path=files.path)
    if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
        return UnreadableFilesError(f"{where} hold no rows to tell the columns from: give their 'schema'", path=files.path)
    if isinstance(error, AnalysisException) or "No FileSystem for scheme" in str(error):
        return UnreadableFilesError(f"{where} cannot be read: {str(error).splitlines()[0]}", path=files.path)
    return error
