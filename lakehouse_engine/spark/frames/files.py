"""Plain files as a DataFrame."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.errors import UnreadableFilesError
from lakehouse_engine.options.files import FilesRead


def files_frame(spark: SparkSession, files: FilesRead) -> DataFrame:
    """Rows of files, listed now. Raises `UnreadableFilesError` if there are none, or Spark cannot infer their columns."""
    reader = spark.read.format(files.format).options(**dict(files.options))
    try:
        rows = (reader if files.schema is None else reader.schema(files.schema)).load(files.path)
        columns = rows.schema  # Spark Connect resolves nothing before this
    except PySparkException as error:
        raise _told(error, files) from error
    if not columns:
        raise _without_columns(f"{files.format} files {files.path}", files)
    return rows


def _told(error: PySparkException, files: FilesRead) -> Exception:
    condition = error.getCondition() or ""
    where = f"{files.format} files {files.path}"
    if condition.startswith("PATH_NOT_FOUND"):
        return UnreadableFilesError(f"there are no {where}: correct the path, or put them there", path=files.path)
    if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
        return _without_columns(where, files)
    reason = str(error).strip().partition("\n")[0]
    if isinstance(error, ParseException):
        message = f"{where}: their 'schema', {files.schema!r}, is no list of columns and types: {reason}"
        return UnreadableFilesError(message, path=files.path)
    if isinstance(error, AnalysisException) or "No FileSystem for scheme" in str(error):
        return UnreadableFilesError(f"{where} cannot be read: {reason}", path=files.path)
    return error


def _without_columns(where: str, files: FilesRead) -> UnreadableFilesError:
    message = f"{where} hold nothing to tell the columns from: give their 'schema', or put files with rows there"
    return UnreadableFilesError(message, path=files.path)
