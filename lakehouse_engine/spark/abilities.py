"""What a session can do beyond frames and SQL: one with a SparkContext in this process, and one of a Spark Connect server, which has none.

Nothing else asks which of the two a session is.
"""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from lakehouse_engine.errors import UnsupportedSessionError
from lakehouse_engine.spark import internals
from lakehouse_engine.spark.local_files import file_frame, files_of, has_room, links_of
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.settings import with_settings

logger = logging.getLogger(__name__)
_ROWS_BELOW = "spark.sql.execution.arrow.localRelationThreshold"
_AT_ONCE = 2_000
"""Rows that Python workers get at once, in the place of the bound by size: wide ones are not to fill the memory (docs/adr/0036)."""
_UNMEASURED = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_AT_ONCE),
}
_TOO_WIDE = "OversizedAllocationException"
"""Of `org.apache.arrow.vector.util`: a column of a batch has 2 GB."""
_ENOUGH = 1 << 16
"""More rows than any cluster runs tasks at once."""


class Abilities(ABC):
    """Of one session. What it says of the application holds for all sessions of that."""

    has_plans: ClassVar[bool]
    """Whether queries have plans that can be looked at, and run so that their result is kept."""

    most_in_closure: ClassVar[int]
    """Bytes that may travel in the closure of a job that the caller of the engine runs, as often as he likes."""

    plans_values: ClassVar[bool]
    """Whether rows of a `column_frame` are values in plans: Spark computes all that is made of them before it drops what nobody asks."""

    looks_here: ClassVar[bool]
    """Whether scans are planned by a JVM of this process, which looks at the files that this process does."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    @abstractmethod
    def application(self) -> str:
        """The Spark application, whose executors all of its sessions share."""

    @property
    @abstractmethod
    def shipping_scope(self) -> str:
        """What gets the code that is shipped: the application, or this session of it only."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """Whether the executors are threads of a JVM that this process started, so that Python workers are of this machine, too."""

    @property
    def file_names(self) -> str:
        """The encoding of names of files, as far as it is known: what it has no letters for Spark does not find."""
        return "unknown"

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """How many tasks run at once, as the cluster says of itself; at least 2."""

    @abstractmethod
    def use_interpreter(self, path: str) -> None:
        """Let Python workers be this interpreter, where the session is local."""

    @abstractmethod
    def ship(self, archive: str, digest: str) -> None:
        """Send Python modules in a zip archive to the executors."""

    def frame(self, rows: pa.Table) -> DataFrame:
        """The rows as a DataFrame, which they are sent for now."""
        # Of rows that become part of a plan Spark leaves out what comes after a batch without any.
        return self._spark.createDataFrame(rows.combine_chunks(), to_spark_schema(rows.schema))

    @abstractmethod
    def column_frame(self, rows: pa.Table) -> DataFrame:
        """As `frame`, for rows of which queries read some columns, each query others."""

    def takes_files(self, size: int) -> bool:
        """Whether `files` may be given so many bytes more."""
        return False

    def files(self, contents: Sequence[bytes]) -> list[Path] | None:
        """Files of Parquet contents, alone in a folder, that executors read as long as the application runs; None where there are none."""
        return None

    def links(self, places: Sequence[tuple[Path, str]]) -> Path | None:
        """A folder with links to files of this machine, each in the directory that is given with it, as `files`."""
        return None

    def listed(self, frame: DataFrame) -> int:
        """How many files Spark found for a frame that is a scan of files and nothing else."""
        return len(frame.inputFiles())

    @abstractmethod
    def with_own_columns(self, frame: DataFrame) -> DataFrame:
        """The rows of a statement, in a frame that can be joined with those of others that read the same views."""

    @abstractmethod
    def handed_over(self, frame: DataFrame, given: DataFrame | None = None) -> pa.Table:
        """The rows of a query that runs now, or (`given`) of a function of the engine's over the rows of that query.

        Rows that are handed to Python are not measured one by one, as Spark 4.1 and later do
        (`spark.sql.execution.arrow.maxBytesPerBatch`), which takes twice as long as all else. Where the session has settings for such
        batches they count, and where the query has functions of Python's of its own these get batches as ever.

        Raises what the query raises. It runs again, measured, where its rows are too wide.
        """


class _Classic(Abilities):
    has_plans = True
    most_in_closure = sys.maxsize  # Spark broadcasts what is large
    plans_values = False
    looks_here = True

    _local: ClassVar[WeakKeyDictionary[SparkSession, bool]] = WeakKeyDictionary()

    @property
    def application(self) -> str:
        return str(self._spark.sparkContext.applicationId)

    @property
    def shipping_scope(self) -> str:
        return self.application

    @property
    def is_local(self) -> bool:
        found = self._local.get(self._spark)
        if found is None:
            found = self._local[self._spark] = self._has_local_master()
        return found

    def _has_local_master(self) -> bool:
        try:
            master = self._spark.conf.get("spark.master", "") or ""
        except PySparkException:
            return False
        return master.startswith("local")

    @property
    def file_names(self) -> str:
        return internals.file_name_encoding(self._spark)

    @property
    def parallelism(self) -> int:
        return max(2, self._spark.sparkContext.defaultParallelism)

    def use_interpreter(self, path: str) -> None:
        if self.is_local:
            self._spark.sparkContext.pythonExec = path

    def ship(self, archive: str, digest: str) -> None:
        self._spark.sparkContext.addPyFile(archive)
        # Python workers that run have imported what they found before: others are started for another environment.
        self._spark.sparkContext.environment["LAKEHOUSE_ENGINE"] = digest

    def column_frame(self, rows: pa.Table) -> DataFrame:
        in_file = file_frame(self._spark, rows) if self.is_local else None
        if in_file is not None:
            return in_file
        # Spark keeps Arrow data as it is, and each query decodes the columns it needs; what is below this size it would turn into rows in
        # each plan, all columns of it, on the driver.
        with with_settings(self._spark, {_ROWS_BELOW: "0"}):
            return self.frame(rows)

    def takes_files(self, size: int) -> bool:
        return self.is_local and has_room(self._spark, size)

    def files(self, contents: Sequence[bytes]) -> list[Path] | None:
        return files_of(self._spark, contents) if self.is_local else None

    def links(self, places: Sequence[tuple[Path, str]]) -> Path | None:
        return links_of(self._spark, places) if self.is_local else None

    def listed(self, frame: DataFrame) -> int:
        try:
            return internals.listed_files(frame)
        except internals.MISSING as error:
            logger.info("how many files Spark found is asked by their names: %s", error)
            return super().listed(frame)

    def with_own_columns(self, frame: DataFrame) -> DataFrame:
        return internals.with_new_columns(frame)

    def handed_over(self, frame: DataFrame, given: DataFrame | None = None) -> pa.Table:
        if self._runs_python(frame if given is None else given):
            return frame.toArrow()
        try:
            with self._unmeasured():
                return frame.toArrow()
        except Exception as error:
            if _TOO_WIDE not in str(error):
                raise
        logger.info("%d rows are more than a column of Arrow data can hold: the query runs again, with its batches measured", _AT_ONCE)
        return frame.toArrow()

    def _runs_python(self, query: DataFrame) -> bool:
        """Whether a query, or a view in it, has functions in Python; so it is taken to be where another Spark names the parts otherwise."""
        try:
            return internals.has_python_functions(query)
        except internals.MISSING as error:
            logger.info("whether a query has functions in Python cannot be told, so that its batches are measured: %s", error)
            return True

    @contextmanager
    def _unmeasured(self) -> Iterator[None]:
        """Properties of the thread's jobs, under settings that the session was given: nobody else's queries see them."""
        context = self._spark.sparkContext
        before = {key: context.getLocalProperty(key) for key in _UNMEASURED}
        for key, value in _UNMEASURED.items():
            context.setLocalProperty(key, value)
        try:
            yield
        finally:
            for key, given in before.items():
                context.setLocalProperty(key, given)  # type: ignore[arg-type]  # None takes it away


class _Connect(Abilities):
    """The server may be anywhere, so that nothing here is local, whatever its master is.

    What a plan holds is sent again with each question about it, in messages of 128 MB at most. Rows of a frame are sent once for a session.
    """

    has_plans = False
    most_in_closure = 1024 * 1024
    plans_values = True
    looks_here = False
    is_local = False

    _applications: ClassVar[WeakKeyDictionary[SparkSession, str]] = WeakKeyDictionary()
    _parallelism: ClassVar[dict[str, int]] = {}

    @property
    def application(self) -> str:
        found = self._applications.get(self._spark)
        if found is None:
            # Ids of local masters on two machines may meet.
            found = f"{self._spark.conf.get('spark.app.id', '')} {self._spark.conf.get('spark.app.startTime', '')}"
            self._applications[self._spark] = found
        return found

    @property
    def shipping_scope(self) -> str:
        return str(self._spark.session_id)  # type: ignore[attr-defined]

    @property
    def parallelism(self) -> int:
        """Spark cuts a range into as many parts: only a job tells."""
        if self.application not in self._parallelism:
            found = self._spark.range(_ENOUGH).selectExpr("spark_partition_id() as part").selectExpr("max(part) + 1").toArrow()
            self._parallelism[self.application] = max(2, int(found.column(0)[0].as_py()))
        return self._parallelism[self.application]

    def use_interpreter(self, path: str) -> None:
        """Nothing: the server's workers are its own."""

    def ship(self, archive: str, digest: str) -> None:
        # Of the session: its workers are of no other one, and it has none yet, unless rows went through Python in it before.
        self._spark.addArtifacts(archive, pyfile=True)

    def column_frame(self, rows: pa.Table) -> DataFrame:
        return self.frame(rows)

    def with_own_columns(self, frame: DataFrame) -> DataFrame:
        return frame  # the server tells columns of two statements apart

    def handed_over(self, frame: DataFrame, given: DataFrame | None = None) -> pa.Table:
        return frame.toArrow()  # its jobs are begun by the server, whose settings are for all that a session does


def abilities_of(spark: SparkSession) -> Abilities:
    """Of a session that `check_session` let pass."""
    return (_Connect if _is_connect(spark) else _Classic)(spark)


def check_session(spark: SparkSession) -> None:
    """Raise `UnsupportedSessionError` for a session that PySpark's functions do not work with in this process: they are for one kind."""
    if _is_connect(spark) == is_remote():
        check_runs(spark)
        return
    if is_remote():
        raise UnsupportedSessionError(
            "this process speaks to a Spark Connect server, and PySpark works with one kind of session in a process: use a session of the"
            " server (SparkSession.builder.remote(url)), or another process for a session with a master"
        )
    raise UnsupportedSessionError(
        "PySpark was not told that this process uses Spark Connect: make the session by SparkSession.builder.remote(url).create() of"
        " pyspark.sql, in a process without a SparkContext"
    )


def check_runs(spark: SparkSession) -> None:
    """Raise `UnsupportedSessionError` for a session that was stopped in this process, which PySpark only says in errors of the JVM."""
    # Nothing is asked of the JVM or the server: statements ask this each time.
    if spark.is_stopped if _is_connect(spark) else internals.is_stopped(spark):  # type: ignore[attr-defined]
        raise UnsupportedSessionError(
            "the Spark session was stopped: get a new one (SparkSession.builder.getOrCreate()), and open the warehouse or the table with it"
            " (Lakehouse(..., spark=...))"
        )


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")
