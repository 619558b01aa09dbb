"""What the engine needs of a Spark session, and where file tasks run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.options import SHIP_ENGINE, TASK_RUNNER
from lakehouse_engine.spark.abilities import abilities_of, check_runs
from lakehouse_engine.spark.tasks.handshake import ensure_executors
from lakehouse_engine.spark.tasks.runner import SparkRunner
from lakehouse_engine.spark.tasks.shipping import ship_engine
from lakehouse_engine.storage.base import Storage


def use_this_interpreter(spark: SparkSession) -> None:
    """Make a local session's Python workers use the running interpreter, unless `PYSPARK_PYTHON` is set.

    Spark would take the first `python3` on the PATH, which may lack the engine.
    """
    if "PYSPARK_PYTHON" not in os.environ:
        abilities_of(spark).use_interpreter(sys.executable)


def prepare_executors(spark: SparkSession, storage: Storage, options: Mapping[str, Any]) -> None:
    """Check, before anything is written with a session's executors, that they run the engine on the same files.

    Asked once per session and table, and not on a local master. Raises as `handshake.ensure_executors`.
    """
    check_runs(spark)
    use_this_interpreter(spark)
    if not abilities_of(spark).is_local:
        if SHIP_ENGINE.read(options):
            ship_engine(spark)
        ensure_executors(spark, storage)


def runner_for(spark: SparkSession, storage: Storage, options: Mapping[str, Any]) -> TaskRunner:
    """Threads of this process if the session's executors are on this machine, else Spark's executors.

    File tasks are Arrow code, which runs in threads at full speed and needs no copy of the batch in other processes (measured in
    docs/adr/0006). Raises as `prepare_executors`.
    """
    choice = TASK_RUNNER.read(options)
    if choice == "SPARK" or (choice == "AUTO" and not abilities_of(spark).is_local):
        prepare_executors(spark, storage, options)
        return SparkRunner(spark, storage)
    return local_runner(options)
