"""What contenders on Spark have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.queries import COLUMNS, NARROW, QUERIES, SPARK_SCHEMA, plain, select_list
from benchmarks.session import JobCounter, SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkContender:
    """Session, scans and export. A subclass says how a table becomes a DataFrame, and how it is written."""

    extra_settings: ClassVar[dict[str, str]] = {}

    spark: SparkSession
    _jobs: JobCounter | None = None

    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        self.spark = start_session(SessionSettings(memory, scratch, tuple(jars)), self.extra_settings)
        self._jobs = JobCounter(self.spark)
        return {"spark": self.spark.version}

    def frame(self, table: str) -> DataFrame:
        raise NotImplementedError

    def base_frame(self, table: str) -> DataFrame:
        """The rows of the base files alone."""
        raise NotImplementedError

    def rows(self, source: str) -> DataFrame:
        """The rows of a Parquet folder."""
        return self.spark.read.schema(SPARK_SCHEMA).parquet(source)

    def no_rows(self, source: str) -> DataFrame:
        """A batch of the same columns that turns out to be empty, as when a query finds nothing new."""
        return self.rows(source).where("false")

    def scan(self, *, table: str, query: str) -> list[Any]:
        return self.aggregate(self.frame(table), select_list(QUERIES[query]))

    def scan_read_optimized(self, *, table: str, query: str) -> list[Any]:
        return self.aggregate(self.base_frame(table), select_list(QUERIES[query]))

    def aggregate(self, frame: DataFrame, expressions: str) -> list[Any]:
        frame.createOrReplaceTempView("scanned")
        row = self.spark.sql(f"select {expressions} from scanned").collect()[0]
        return [plain(value) for value in row]

    def narrow(self, frame: DataFrame) -> list[Any]:
        return self.aggregate(frame, select_list(NARROW))

    def export(self, *, table: str, target: str) -> None:
        self.frame(table).select(*COLUMNS).write.parquet(target)

    def jobs_started(self) -> int:
        return -1 if self._jobs is None else self._jobs.next_job()

    def stop(self) -> None:
        if self._jobs is not None:
            self.spark.stop()
