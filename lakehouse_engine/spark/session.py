"""What the engine needs of a Spark session, and where file tasks run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.errors import UnsupportedSessionError
from lakehouse_engine.options import SHIP_ENGINE, TASK_RUNNER
from lakehouse_engine.spark.handshake import ensure_executors
from lakehouse_engine.spark.runner import SparkRunner
from lakehouse_engine.spark.shipping import ship_engine
from lakehouse_engine.storage.base import Storage


def is_local(spark: SparkSession) -> bool:
    """Whether executors are threads of this machine's JVM; a Connect server counts as elsewhere."""
    try:
        master = spark.conf.get("spark.master", "") or ""
    except PySparkException:
        return False
    return master.startswith("local")


def check_session(spark: SparkSession) -> None:
    """Raise `UnsupportedSessionError` for a session of Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UnsupportedSessionError(
            "a Spark Connect session is not supported yet: views of a statement, the interpreter of executors and the width of the cluster"
            " are set through a SparkContext, which it has not; use a session with a master (local[*], spark://..., yarn, k8s://...)"
        )


def use_this_interpreter(spark: SparkSession) -> None:
    """Let a local session's Python workers be the running interpreter, unless `PYSPARK_PYTHON` says otherwise.

    Spark would take the first `python3` of the PATH, which need not have the engine installed.
    """
    if "PYSPARK_PYTHON" not in os.environ and is_local(spark):
        spark.sparkContext.pythonExec = sys.executable


def prepare_executors(spark: SparkSession, storage: Storage, options: Mapping[str, Any]) -> None:
    """Before anything is written with the executors of a session: see to it that they run the engine, on the same files.

    Asked once for a session and table, and not on a local master. Raises as `handshake.ensure_executors`.
    """
    use_this_interpreter(spark)
    if not is_local(spark):
        if SHIP_ENGINE.read(options):
            ship_engine(spark)
        ensure_executors(spark, storage)


def runner_for(spark: SparkSession | None, storage: Storage, options: Mapping[str, Any]) -> TaskRunner:
    """Threads of this process without Spark or when its executors are this machine, else Spark's executors.

    File tasks are Arrow code, which runs in threads at full speed and needs no copy of the batch in other processes (measured in
    docs/adr/0006). Raises as `prepare_executors`.
    """
    choice = TASK_RUNNER.read(options)
    if spark is not None and (choice == "SPARK" or (choice == "AUTO" and not is_local(spark))):
        prepare_executors(spark, storage, options)
        return SparkRunner(spark, storage)
    return local_runner(options)
