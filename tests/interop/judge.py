"""Apache Hudi behind a pipe: one Spark 3.5 session with one Hudi bundle, told what to do by JSON lines.

Run by the interpreter of the interop environment (`make interop-setup`), never imported by a test: it must not need anything of
this project. Each request is one line on standard input, each answer one line on standard output:

    {"op": "read", "path": ..., "options": {...}, "into": <parquet folder>, "conf": {...}}
    {"op": "reads", "reads": [{"path": ..., "options": {...}, "into": <parquet folder>}, ...], "conf": {...}}
    {"op": "write", "path": ..., "rows": <parquet file>, "options": {...}, "mode": "append", "conf": {...}}
    {"op": "sql", "statements": [...], "into": <parquet folder, for the rows of the last statement>, "conf": {...}}
    {"op": "metadata", "path": ..., "version": "0.15.0", "conf": {...}}
    {"op": "stop"}

    {"ok": true, ...} or {"ok": false, "error": <root cause>, "type": <its class>, "trace": <the whole chain>}

`conf` holds session settings for this one request. The JVM's own output goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from judge_metadata import MetadataJudge
from pyspark.sql import SparkSession

HADOOP = "spark.hadoop."


def start_session(jar: str, work: str, memory: str, extra: dict[str, str]) -> SparkSession:
    settings = {
        # spark.jars and not only the driver's class path: the Kryo registrator is also loaded by the executor's class loader.
        "spark.jars": jar,
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": os.path.join(work, "warehouse"),
        "spark.local.dir": os.path.join(work, "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        # Compiling a method for every query of tens of rows takes longer than the query.
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Hudi's files do not say which Spark wrote them, so days before 1582 are refused without these.
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        # Hudi measures what it keeps in memory by looking into locks.
        " --add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
        **extra,
    }
    builder = SparkSession.builder.master("local[2]").appName("hudi-judge")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Judge:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def answer(self, request: dict) -> dict:
        operations = {"read": self._read, "reads": self._reads, "write": self._write, "sql": self._sql, "metadata": self._metadata}
        operation = operations[request["op"]]
        with self._settings(request.get("conf") or {}):
            return operation(request)

    @contextmanager
    def _settings(self, conf: dict[str, str]) -> Iterator[None]:
        before = {key: self._get(key) for key in conf}
        self._set(conf)
        try:
            yield
        finally:
            self._set(before)

    def _get(self, key: str) -> str | None:
        if key.startswith(HADOOP):
            return self._hadoop().get(key.removeprefix(HADOOP))
        return self._spark.conf.get(key, None)

    def _set(self, conf: dict[str, str | None]) -> None:
        for key, value in conf.items():
            # Spark takes spark.hadoop.* into the Hadoop configuration only when it starts.
            target, name = (self._hadoop(), key.removeprefix(HADOOP)) if key.startswith(HADOOP) else (self._spark.conf, key)
            if value is None:
                target.unset(name)
            else:
                target.set(name, value)

    def _hadoop(self) -> Any:
        return self._spark.sparkContext._jsc.hadoopConfiguration()

    def _read(self, request: dict) -> dict:
        # The path may have been written since the last request, by us or by another process.
        self._spark.catalog.refreshByPath(request["path"])
        return self._load(request["path"], request)

    def _reads(self, request: dict) -> dict:
        """Several reads side by side: most of a small read is waiting for Spark's scheduler."""
        for path in dict.fromkeys(read["path"] for read in request["reads"]):
            self._spark.catalog.refreshByPath(path)
        with ThreadPoolExecutor(4) as pool:
            return {"reads": list(pool.map(lambda read: self._load(read["path"], read), request["reads"]))}

    def _load(self, path: str, read: dict) -> dict:
        frame = self._spark.read.format("hudi").options(**read.get("options") or {}).load(path)
        frame = frame.where(read["where"]) if read.get("where") else frame
        frame.coalesce(1).write.mode("overwrite").parquet(read["into"])
        return {"columns": {field.name: field.dataType.simpleString() for field in frame.schema}}

    def _metadata(self, request: dict) -> dict:
        """What a metadata table says otherwise than its table."""
        self._spark.catalog.refreshByPath(request["path"])
        return MetadataJudge(self._spark, request["version"], request["path"]).judge()

    def _write(self, request: dict) -> dict:
        self._spark.catalog.refreshByPath(request["path"])
        rows = self._spark.read.parquet(request["rows"])
        rows.write.format("hudi").options(**request["options"]).mode(request["mode"]).save(request["path"])
        return {}

    def _sql(self, request: dict) -> dict:
        frame = None
        for statement in request["statements"]:
            frame = self._spark.sql(statement)
        if frame is None or not frame.columns or not request.get("into"):
            return {"columns": {}}
        frame.coalesce(1).write.mode("overwrite").parquet(request["into"])
        return {"columns": {field.name: field.dataType.simpleString() for field in frame.schema}}


def java_causes(error: BaseException) -> list[str]:
    """The Java exceptions behind a Python one, outermost first; empty when there is none."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes: list[str] = []
    while cause is not None and len(causes) < 20:
        causes.append(str(cause.toString()))
        cause = cause.getCause()
    return causes


def failure(error: BaseException) -> dict:
    chain = java_causes(error) or [f"{type(error).__name__}: {error}"]
    kind, _, message = chain[-1].partition(": ")
    return {"ok": False, "type": kind, "error": message or kind, "trace": "\n".join(chain), "python": traceback.format_exc(limit=-3)}


def serve(judge: Judge, requests: Iterator[str], answers: Any) -> None:
    for line in requests:
        request = json.loads(line)
        if request["op"] == "stop":
            return
        try:
            answer = {"ok": True, **judge.answer(request)}
        except Exception as error:  # noqa: BLE001 - whatever Hudi throws is an answer, and the next request may still be fine
            answer = failure(error)
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jar", required=True)
    parser.add_argument("--work", required=True, help="folder for Spark's own files")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--conf", default="{}", help="further Spark settings, as JSON")
    arguments = parser.parse_args()
    # Answers get a descriptor of their own; whatever else writes to standard output (the JVM does) ends up in the log.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = start_session(arguments.jar, arguments.work, arguments.memory, json.loads(arguments.conf))
    try:
        print(json.dumps({"ok": True, "spark": spark.version}), file=answers, flush=True)
        serve(Judge(spark), iter(sys.stdin.readline, ""), answers)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
