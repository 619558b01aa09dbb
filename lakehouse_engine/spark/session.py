"""What the engine needs of a Spark session, and where file tasks run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.options import TASK_RUNNER
from lakehouse_engine.spark.runner import SparkRunner
from lakehouse_engine.storage.base import Storage


def is_local(spark: SparkSession) -> bool:
    """Whether executors are threads of this machine's JVM; a Connect server counts as elsewhere."""
    try:
        master = spark.conf.get("spark.master", "") or ""
    except PySparkException:
        return False
    return master.startswith("local")


def use_this_interpreter(spark: SparkSession) -> None:
    """Let a local session's Python workers be the running interpreter, unless `PYSPARK_PYTHON` says otherwise.

    Spark would take the first `python3` of the PATH, which need not have the engine installed.
    """
    if "PYSPARK_PYTHON" not in os.environ and is_local(spark):
        spark.sparkContext.pythonExec = sys.executable


def runner_for(spark: SparkSession | None, storage: Storage, options: Mapping[str, Any]) -> TaskRunner:
    """Threads of this process without Spark or when its executors are this machine, else Spark's executors.

    File tasks are Arrow code, which runs in threads at full speed and needs no copy of the batch in other processes (measured in
    docs/adr/0006).
    """
    choice = TASK_RUNNER.read(options)
    if spark is not None and (choice == "SPARK" or (choice == "AUTO" and not is_local(spark))):
        return SparkRunner(spark, storage)
    return local_runner(options)
