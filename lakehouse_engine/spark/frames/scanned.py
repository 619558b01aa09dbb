"""Frames over base files by Spark's own Parquet reader, kept with their session, so that a repeated read lists nothing.

Spark looks up every given file, in a job with as many tasks if they are more than about thirty: seconds per statement for a thousand files.
Each file is checked before its frame is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce

import pyarrow as pa
import pyarrow.types as pat
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col

from lakehouse_engine.errors import UnsupportedSessionError
from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.files.checked import CHECKED
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession, analyzed_bytes
from lakehouse_engine.spark.frames.logged.linked_files import LinkedFiles
from lakehouse_engine.spark.frames.partitions import as_path, tells_values
from lakehouse_engine.spark.frames.widened import has_type
from lakehouse_engine.spark.local_files import spark_path
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.settings import AS_STORED, PARQUET, with_settings
from lakehouse_engine.spark.tasks.handshake import ensure_server
from lakehouse_engine.storage.local import LocalStorage

_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"
_BY_DICTIONARY = "parquet.filter.dictionary.enabled"
"""Whether Spark skips row groups by their dictionaries: there -0.0 and 0.0 are two numbers, but Spark compares them as equal."""
_FROM, _TASKS = "spark.sql.sources.parallelPartitionDiscovery.threshold", "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_NEVER = str(2**31 - 1)
_AS_THEY_ARE = {"recursiveFileLookup": "true"}
"""Directory names carry no values."""


class ScannedFrames(BySession[tuple[DataFrame, int]]):
    """Frames of each session, at most `limit` bytes per session in the JVM."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one[1])

    def get(self, spark: SparkSession, key: Hashable, files: int, columns: int, make: Callable[[], DataFrame]) -> DataFrame:
        """Frame that `make` made for this key, now or before, for that many files and columns. Its column ids stay the same."""
        return self.of(spark).find(key, lambda: (make(), analyzed_bytes(columns, files)))[0]


SCANNED = ScannedFrames(limit=128 * 1024 * 1024)


Checked = tuple[Hashable, ...]


def checked(plan: ScanPlan, files: Sequence[BaseFile]) -> Checked:
    """Check the base files of a plan, unless this process did before; returns their identities. None if nothing has to be checked.

    Spark's reader checks pages when told to, never page headers or the footer. Raises as `CheckedFiles.check`.
    """
    return CHECKED.check(plan.storage, files) if plan.verify else ()


def scanned(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Checked, folders: Sequence[str] = ()
) -> DataFrame:
    """All rows of base files (`known` from `checked`) with all stored columns, plus the files of `folders` (`scanned_beside`)."""
    by_paths = tells_values(plan.rules, [file.path for file in files])

    def made() -> DataFrame:
        uris = [*(as_path(plan.storage.uri(file.path)) for file in files), *folders]
        return _listed(spark, plan, files, uris, plan.storage.uri() if by_paths else None)

    if not known:
        return made()
    schema = stored_schema(plan)
    return SCANNED.get(spark, (known, tuple(folders), schema, by_paths), len(files) + len(folders), len(schema), made)


def scanned_links(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], linked: LinkedFiles
) -> DataFrame:
    """All rows of linked files with all stored columns; base files among them are from `files`.

    Raises `MissingFileError` for a file that is gone, and `UnsupportedSessionError` if Spark finds other files.
    """

    def made() -> DataFrame:
        frame = _listed(spark, plan, files, [spark_path(linked.folder)], LocalStorage(str(linked.folder)).uri())
        # Spark skips a dangling link in a listing, and that file's rows would be missing.
        gone = linked.leads_nowhere()
        if gone is not None:
            raise missing_file(next((file.path for file in files if file.name == gone.name), gone.name))
        # It also skips names that the JVM cannot encode.
        found = abilities_of(spark).listed(frame)
        if found != len(linked.links):
            raise _not_found(spark, f"{len(linked.links) - found} of the {len(linked.links)} files of a snapshot")
        return frame

    schema = stored_schema(plan)
    return SCANNED.get(spark, (linked.folder, schema), len(linked.links), len(schema), made)


def scanned_beside(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Checked, folders: Sequence[str]
) -> list[DataFrame]:
    """Like `scanned`, plus all rows of the files in `folders` (as given to Spark), in one frame with the columns of both."""
    if folders and files and not tells_values(plan.rules, [file.path for file in files]):
        return [scanned(spark, plan, files, known, folders)]
    frames = [scanned(spark, plan, files, known)] if files else []
    return [*frames, _read(spark, plan, folders, _AS_THEY_ARE)] if folders else frames


def in_range(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """The rows in the plan's range of commits."""
    return frame if plan.commit_range is None else frame.where(_within(plan.commit_range))


def stored_schema(plan: ScanPlan) -> pa.Schema:
    """Columns of the files that a plan reads."""
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *plan.schema])


def listed_here(spark: SparkSession) -> AbstractContextManager[None]:
    """On this machine the driver checks the files itself; elsewhere tasks share them, instead of one task per file."""
    abilities = abilities_of(spark)
    given = {_FROM: _NEVER} if abilities.is_local else {_TASKS: str(abilities.parallelism)}
    return with_settings(spark, given)


def _listed(
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[BaseFile],
    uris: Sequence[str],
    base: str | None,
) -> DataFrame:
    """`base`: folder below which directory names hold partition columns, if they do. Spark then reads only directories that a query needs,
    and puts these columns last.
    """
    ensure_server(spark, plan.storage)
    try:
        return _read(spark, plan, uris, _AS_THEY_ARE if base is None else {"basePath": base})
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        gone = next((file.path for file in files if plan.storage.head(file.path) is None), None)
        if gone is not None:
            raise missing_file(gone) from error  # since it was checked
        abilities = abilities_of(spark)
        if not abilities.is_local or abilities.file_names.upper() == "UTF-8":
            raise
        raise _not_found(spark, "a file that is there") from error


def _not_found(spark: SparkSession, files: str) -> UnsupportedSessionError:
    """For a session whose JVM is on this machine."""
    encoding = abilities_of(spark).file_names
    return UnsupportedSessionError(
        f"Spark does not find {files}: names of files are {encoding} to its JVM, in which other letters cannot be written; start the"
        " process with LC_ALL=C.UTF-8 in its environment, or another locale of UTF-8"
    )


def _read(
    spark: SparkSession, plan: ScanPlan, uris: Sequence[str], found: Mapping[str, str]
) -> DataFrame:
    """`found`: options that tell Spark what directory names mean."""
    by_dictionary = not any(has_type(field.type, pat.is_floating) for field in plan.schema)
    options = {**AS_STORED, **found, _VERIFY_PAGES: str(plan.verify).lower(), _BY_DICTIONARY: str(by_dictionary).lower()}
    reader = spark.read.format(PARQUET).schema(to_spark_schema(stored_schema(plan))).options(**options)
    with listed_here(spark):
        return reader.load([*uris])


def _within(window: InstantRange) -> Column:
    stored = col(COMMIT_TIME)
    only = window.times
    if only is not None:
        inside = stored.isin(sorted(only))
        if window.start is None:
            return inside
        return inside | ((stored < window.start) & _within(InstantRange(window.begin, window.end)))
    parts = [stored.isNotNull()]
    if window.begin is not None:
        parts.append(stored > window.begin)
    if window.end is not None:
        parts.append(stored <= window.end)
    return reduce(lambda left, right: left & right, parts)
