"""One table made, or one upsert timed, in the contender's own interpreter: `python -m benchmarks.scale.cell '{"kind": ...}'`.

The last line of the output is what was found, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.scale.peaks import Peaks, cpu_seconds
from benchmarks.session import SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEXT = "concat('a text of some length for row ', cast(id as string))"
_MEGABYTE = 1024 * 1024
_MODULES = {"ours": "benchmarks.scale.ours", "iceberg": "benchmarks.scale.iceberg", "hudi": "benchmarks.scale.hudi"}


class Subject(Protocol):
    """A kind of table, in one process."""

    extra_settings: dict[str, str]
    """Of its session."""

    largest_part: int
    """Bytes of the largest part that a task was sent; -1 where that cannot be told."""

    def make(self, spark: SparkSession, path: str, rows: DataFrame, table_type: str) -> None:
        """A new table at `path`, a file a task of `rows`."""

    def ready(self, spark: SparkSession, path: str, options: dict[str, Any]) -> None:
        """What is not timed."""

    def upsert(self, batch: DataFrame) -> str | None:
        """Timed; the route, if there are several."""

    def total(self) -> int:
        """The sum of the column `n`."""


def main() -> int:
    print(json.dumps(_cell(**json.loads(sys.argv[1]))))
    return 0


def _cell(kind: str, path: str, contender: str, memory: str, jars: list[str], **what: Any) -> dict[str, Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    subject: Subject = importlib.import_module(_MODULES[contender]).SUBJECT()
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(SessionSettings(memory, scratch, tuple(jars)), subject.extra_settings)
        try:
            if kind == "make":
                subject.make(spark, path, _frame(spark, what["rows"], 1, 1).repartition(what["files"]), what["table_type"])
                return {}
            return _upsert(spark, subject, path, **what)
        finally:
            spark.stop()


def _frame(spark: SparkSession, rows: int, step: int, n: int) -> DataFrame:
    """Rows of every `step`th id."""
    return spark.range(rows).selectExpr(f"id * {step} as id").selectExpr(
        "format_string('key-%016d', id) as id", f"cast({n} as bigint) as n", "id * 0.5D as price", f"{_TEXT} as text"
    )


def _upsert(
    spark: SparkSession, subject: Subject, path: str, rows: int, batch: int, options: dict[str, Any], route: str | None
) -> dict[str, Any]:
    step = max(1, rows * 10 // 9 // batch)
    subject.ready(spark, path, options)
    with Peaks() as peaks:
        began, used = time.monotonic(), cpu_seconds()
        taken = subject.upsert(_frame(spark, batch, step, 2))
        seconds, used = time.monotonic() - began, cpu_seconds() - used
    assert taken == route, taken
    known = min(batch, -(-rows // step))
    total = subject.total()
    assert total == rows + known + 2 * (batch - known), total
    sizes = {"before": peaks.before, "driver": peaks.driver, "worker": peaks.worker, "part": subject.largest_part, "jvm": peaks.jvm}
    megabytes = {name: round(size / _MEGABYTE, 1) for name, size in sizes.items() if size >= 0}
    return {"s": round(seconds, 1), "cpu": round(used, 1), **megabytes}


if __name__ == "__main__":
    raise SystemExit(main())
