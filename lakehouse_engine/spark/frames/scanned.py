"""Frames over base files, by Spark's own Parquet reader, kept with their session: who reads the same files again lists nothing again.

Spark asks for every file that it is given, in a job of as many tasks where they are more than some thirty: of a thousand files that is
seconds, in each statement. Each file is looked at before a frame of it is used again.
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
"""Whether Spark leaves out row groups because a column's dictionary has no value that a condition wants: of a dictionary -0.0 is another
number than 0.0, and to Spark they are one.
"""
_FROM, _TASKS = "spark.sql.sources.parallelPartitionDiscovery.threshold", "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_NEVER = str(2**31 - 1)
_AS_THEY_ARE = {"recursiveFileLookup": "true"}
"""Directories' names say nothing."""


class ScannedFrames(BySession[tuple[DataFrame, int]]):
    """Frames of each session, which have at most `limit` bytes a session in the JVM."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one[1])

    def get(self, spark: SparkSession, key: Hashable, files: int, columns: int, make: Callable[[], DataFrame]) -> DataFrame:
        """What `make` made for this key, now or before, of so many files and columns. Its columns are the same ones each time."""
        return self.of(spark).find(key, lambda: (make(), analyzed_bytes(columns, files)))[0]


SCANNED = ScannedFrames(limit=128 * 1024 * 1024)


Checked = tuple[Hashable, ...]


def checked(plan: ScanPlan, files: Sequence[BaseFile]) -> Checked:
    """Look at base files of a plan, unless this process did before: what tells them from others. Nothing does where none is to be checked.

    Spark's reader checks pages when it is told to, never their headers or the footer. Raises as `CheckedFiles.check`.
    """
    return CHECKED.check(plan.storage, files) if plan.verify else ()


def scanned(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Checked, folders: Sequence[str] = ()
) -> DataFrame:
    """All rows of base files, `known` as `checked`, with all columns that are stored; those of `folders` (`scanned_beside`) with them."""
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
    """All rows of linked files, with all columns that are stored; base files among them are of `files`.

    Raises `MissingFileError` for a file that is not there any more, and `UnsupportedSessionError` where Spark finds others than those.
    """

    def made() -> DataFrame:
        frame = _listed(spark, plan, files, [spark_path(linked.folder)], LocalStorage(str(linked.folder)).uri())
        # Spark passes over a link to nothing when it lists a folder, and the rows of that file would be missing.
        gone = linked.leads_nowhere()
        if gone is not None:
            raise missing_file(next((file.path for file in files if file.name == gone.name), gone.name))
        # So it does with names that the JVM cannot write down.
        found = abilities_of(spark).listed(frame)
        if found != len(linked.links):
            raise _not_found(spark, f"{len(linked.links) - found} of the {len(linked.links)} files of a snapshot")
        return frame

    schema = stored_schema(plan)
    return SCANNED.get(spark, (linked.folder, schema), len(linked.links), len(schema), made)


def scanned_beside(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Checked, folders: Sequence[str]
) -> list[DataFrame]:
    """As `scanned`, and all rows of files with all columns in `folders` (as Spark is told of them): one frame, where all columns of both
    are in the files.
    """
    if folders and files and not tells_values(plan.rules, [file.path for file in files]):
        return [scanned(spark, plan, files, known, folders)]
    frames = [scanned(spark, plan, files, known)] if files else []
    return [*frames, _read(spark, plan, folders, _AS_THEY_ARE)] if folders else frames


def in_range(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """The rows of stored ones that the plan's range of commits has."""
    return frame if plan.commit_range is None else frame.where(_within(plan.commit_range))


def stored_schema(plan: ScanPlan) -> pa.Schema:
    """The columns of the files that a plan reads."""
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *plan.schema])


def listed_here(spark: SparkSession) -> AbstractContextManager[None]:
    """Where executors are this machine, the driver looks at files itself; elsewhere tasks share them, rather than have one each."""
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
    """`base`: below which directories' names tell, where they do: Spark takes the partition columns from these, opens what a query needs of
    them, and has them last.
    """
    ensure_server(spark, plan.storage)
    try:
        return _read(spark, plan, uris, _AS_THEY_ARE if base is None else {"basePath": base})
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        gone = next((file.path for file in files if plan.storage.head(file.path) is None), None)
        if gone is not None:
            raise missing_file(gone) from error  # since it was looked at
        abilities = abilities_of(spark)
        if not abilities.is_local or abilities.file_names.upper() == "UTF-8":
            raise
        raise _not_found(spark, "a file that is there") from error


def _not_found(spark: SparkSession, files: str) -> UnsupportedSessionError:
    """Of a session whose JVM is on this machine."""
    encoding = abilities_of(spark).file_names
    return UnsupportedSessionError(
        f"Spark does not find {files}: names of files are {encoding} to its JVM, in which other letters cannot be written; start the"
        " process with LC_ALL=C.UTF-8 in its environment, or another locale of UTF-8"
    )


def _read(
    spark: SparkSession, plan: ScanPlan, uris: Sequence[str], found: Mapping[str, str]
) -> DataFrame:
    """`found`: options that say what the directories' names are to Spark."""
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
