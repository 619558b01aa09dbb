"""What a session can do beyond frames and SQL: one with a SparkContext in this process, or one of a Spark Connect server, which has none.

No other module asks which kind a session is.
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
"""Rows per batch to Python workers, instead of the limit by size, so that wide rows do not fill the memory (docs/adr/0036)."""
_UNMEASURED = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_AT_ONCE),
}
_TOO_WIDE = "OversizedAllocationException"
"""Limit of `org.apache.arrow.vector.util`: 2 GB per column of a batch."""
_ENOUGH = 1 << 16
"""More tasks than any cluster runs at once."""


class Abilities(ABC):
    """Abilities of one session. What it says about the application holds for all sessions of it."""

    has_plans: ClassVar[bool]
    """True if queries have plans that can be inspected, and run with their result kept."""

    most_in_closure: ClassVar[int]
    """Bytes that may travel in the closure of a job that the caller may run repeatedly."""

    plans_values: ClassVar[bool]
    """True if rows of a `column_frame` are values in plans: Spark then computes all derived columns before it drops unused ones."""

    looks_here: ClassVar[bool]
    """True if scans are planned by a JVM of this process, which sees the same files."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    @abstractmethod
    def application(self) -> str:
        """The Spark application, whose executors all its sessions share."""

    @property
    @abstractmethod
    def shipping_scope(self) -> str:
        """Receiver of shipped code: the application, or only this session."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """True if the executors are threads of a JVM that this process started, so that Python workers run on this machine."""

    @property
    def file_names(self) -> str:
        """Encoding of file names, if known; Spark does not find names that it cannot encode."""
        return "unknown"

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """Number of tasks that run at once, according to the cluster; at least 2."""

    @abstractmethod
    def use_interpreter(self, path: str) -> None:
        """Make Python workers use this interpreter, if the session is local."""

    @abstractmethod
    def ship(self, archive: str, digest: str) -> None:
        """Send Python modules in a zip archive to the executors."""

    def frame(self, rows: pa.Table) -> DataFrame:
        """The rows as a DataFrame; they are sent now."""
        # When rows become part of a plan, Spark drops those after an empty batch.
        return self._spark.createDataFrame(rows.combine_chunks(), to_spark_schema(rows.schema))

    @abstractmethod
    def column_frame(self, rows: pa.Table) -> DataFrame:
        """Like `frame`, for rows of which each query reads other columns."""

    def takes_files(self, size: int) -> bool:
        """True if `files` may be given that many more bytes."""
        return False

    def files(self, contents: Sequence[bytes]) -> list[Path] | None:
        """Parquet files with these contents, alone in a folder, readable by executors while the application runs; None if that is
        impossible.
        """
        return None

    def links(self, places: Sequence[tuple[Path, str]]) -> Path | None:
        """A folder with links to local files, each in its given directory; lifetime as for `files`."""
        return None

    def listed(self, frame: DataFrame) -> int:
        """Number of files that Spark found for a frame that is only a scan of files."""
        return len(frame.inputFiles())

    @abstractmethod
    def with_own_columns(self, frame: DataFrame) -> DataFrame:
        """Rows of a statement, in a frame that can be joined with others that read the same views."""

    @abstractmethod
    def handed_over(self, frame: DataFrame, given: DataFrame | None = None) -> pa.Table:
        """Rows of a query that runs now, or (`given`) of an engine function over the query's rows.

        Rows handed to Python are not measured one by one, as Spark 4.1 and later do (`spark.sql.execution.arrow.maxBytesPerBatch`), because
        that takes twice as long as everything else. Settings of the session for such batches are respected, and a query's own Python
        functions get their usual batches.

        Raises what the query raises. It is repeated with measuring if its rows are too wide.
        """


class _Classic(Abilities):
    has_plans = True
    most_in_closure = sys.maxsize  # Spark broadcasts large closures
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
        # Running Python workers have imported an earlier version: another environment starts new ones.
        self._spark.sparkContext.environment["LAKEHOUSE_ENGINE"] = digest

    def column_frame(self, rows: pa.Table) -> DataFrame:
        in_file = file_frame(self._spark, rows) if self.is_local else None
        if in_file is not None:
            return in_file
        # Spark keeps Arrow data and decodes the needed columns per query; below this size it would turn all columns into rows on the
        # driver, for each plan.
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
        """True if a query, or a view in it, has Python functions; also if another Spark names plan parts differently."""
        try:
            return internals.has_python_functions(query)
        except internals.MISSING as error:
            logger.info("whether a query has functions in Python cannot be told, so that its batches are measured: %s", error)
            return True

    @contextmanager
    def _unmeasured(self) -> Iterator[None]:
        """Properties of this thread's jobs that override settings, so that no other query sees them."""
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
    """Session of a Spark Connect server. The server may be anywhere, so nothing is local, whatever its master.

    Each question about a plan sends its content again, in messages of at most 128 MB. Rows of a frame are sent once per session.
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
            # Ids of local masters on two machines may be equal.
            found = f"{self._spark.conf.get('spark.app.id', '')} {self._spark.conf.get('spark.app.startTime', '')}"
            self._applications[self._spark] = found
        return found

    @property
    def shipping_scope(self) -> str:
        return str(self._spark.session_id)  # type: ignore[attr-defined]

    @property
    def parallelism(self) -> int:
        """Number of partitions of a range; only a job tells."""
        if self.application not in self._parallelism:
            found = self._spark.range(_ENOUGH).selectExpr("spark_partition_id() as part").selectExpr("max(part) + 1").toArrow()
            self._parallelism[self.application] = max(2, int(found.column(0)[0].as_py()))
        return self._parallelism[self.application]

    def use_interpreter(self, path: str) -> None:
        """Nothing to do: the server has its own workers."""

    def ship(self, archive: str, digest: str) -> None:
        # Per session: its workers belong to it alone, and none exist yet unless rows went through Python before.
        self._spark.addArtifacts(archive, pyfile=True)

    def column_frame(self, rows: pa.Table) -> DataFrame:
        return self.frame(rows)

    def with_own_columns(self, frame: DataFrame) -> DataFrame:
        return frame  # the server tells columns of two statements apart

    def handed_over(self, frame: DataFrame, given: DataFrame | None = None) -> pa.Table:
        return frame.toArrow()  # the server starts the jobs, and its settings apply to the whole session


def abilities_of(spark: SparkSession) -> Abilities:
    """Abilities of a session that passed `check_session`."""
    return (_Connect if _is_connect(spark) else _Classic)(spark)


def check_session(spark: SparkSession) -> None:
    """Raise `UnsupportedSessionError` for a session kind that PySpark's functions do not support in this process: they serve one kind."""
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
    """Raise `UnsupportedSessionError` for a stopped session, which PySpark only reports as a JVM error."""
    # Sends no request to JVM or server: every statement calls this.
    if spark.is_stopped if _is_connect(spark) else internals.is_stopped(spark):  # type: ignore[attr-defined]
        raise UnsupportedSessionError(
            "the Spark session was stopped: get a new one (SparkSession.builder.getOrCreate()), and open the warehouse or the table with it"
            " (Lakehouse(..., spark=...))"
        )


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")
