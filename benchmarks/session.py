"""The Spark session of every contender that has one: the same settings for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.app.name": "benchmarks",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.log.level": "ERROR",
}


@dataclass(frozen=True)
class SessionSettings:
    """What the harness decides for a session: memory as Spark writes it (`6g`), a folder for shuffle files, jars."""

    memory: str
    scratch: str
    jars: tuple[str, ...] = ()


def start_session(settings: SessionSettings, extra: dict[str, Any]) -> SparkSession:
    """A warm session: the JVM runs, one job has run. `extra` is what a table format needs to work at all (catalogs, extensions)."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    options = {**SETTINGS, "spark.driver.memory": settings.memory, "spark.local.dir": settings.scratch, **extra}
    if settings.jars:
        options["spark.jars"] = ",".join(settings.jars)
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.range(1000).selectExpr("sum(id)").collect()
    return session


class JobCounter:
    """Counts the jobs of a session: job numbers are consecutive, so two probe jobs tell how many ran between them."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._probes = 0

    def next_job(self) -> int:
        """Runs one tiny job and returns its number."""
        self._probes += 1
        group = f"job-counter-{self._probes}"
        self._context.setJobGroup(group, "counts jobs")
        self._context.range(1, numSlices=1).count()
        jobs = self._context.statusTracker().getJobIdsForGroup(group)
        self._context.setJobGroup("measured", "the measured work")
        return max(jobs)
