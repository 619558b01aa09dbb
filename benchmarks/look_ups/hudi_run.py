"""Hudi 1.2 on Spark 3.5 upserts batches into a copy of a table of ours; run as a script by the interpreter of its environment."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

_WARM_UP = 2


def hudi_upserts(path: Path, partitions_of_metadata: Sequence[str], repeats: int, partitions: int) -> list[float]:
    """Milliseconds of the JVM's processor time of an upsert of one row and of 10,000 new keys, each first and then (the median)."""
    import pyarrow.parquet as pq

    from benchmarks.contenders import CONTENDERS
    from benchmarks.environments import interpreter, jars
    from benchmarks.look_ups.tables import batches

    spec = CONTENDERS["hudi"]
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, list[str]] = {}
        for kind in ("one", "new"):
            for number, rows in enumerate(batches(kind, _WARM_UP + repeats + 1, partitions)):
                pq.write_table(rows, f"{folder}/{kind}-{number}.parquet")
                files.setdefault(kind, []).append(f"{folder}/{kind}-{number}.parquet")
        told = {"table": str(path), "metadata": list(partitions_of_metadata), "files": files, "scratch": folder}
        told["jars"] = jars(spec.artifacts)
        command = [interpreter(spec.environment), "-m", "benchmarks.look_ups.hudi_run", json.dumps(told)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Hudi failed: {done.stderr[-2000:]}")
    taken = json.loads(done.stdout.strip().splitlines()[-1])
    return [value * 1000 for kind in ("one", "new") for value in (taken[kind][_WARM_UP], median(taken[kind][_WARM_UP + 1 :]))]


def _run(told: dict[str, Any]) -> dict[str, list[float]]:
    from benchmarks.contenders.hudi_spark import HudiSpark

    contender = HudiSpark()
    contender.start(memory="6g", scratch=told["scratch"], jars=told["jars"])
    pid = contender.spark._jvm.java.lang.ProcessHandle.current().pid()
    has = {name: str(name in told["metadata"]).lower() for name in ("record_index", "column_stats", "partition_stats", "bloom_filters")}
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "RECORD_INDEX" if has["record_index"] == "true" else "GLOBAL_SIMPLE",
        "hoodie.metadata.enable": str(bool(told["metadata"])).lower(),
        "hoodie.metadata.record.index.enable": has["record_index"],
        "hoodie.metadata.index.column.stats.enable": has["column_stats"],
        "hoodie.metadata.index.partition.stats.enable": has["partition_stats"],
        "hoodie.metadata.index.bloom.filter.enable": has["bloom_filters"],
        "hoodie.parquet.compression.codec": "zstd",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    taken: dict[str, list[float]] = {}
    for kind, files in told["files"].items():
        for file in files:
            before = _seconds(pid)
            contender.spark.read.parquet(file).write.format("hudi").options(**options).mode("append").save(told["table"])
            taken.setdefault(kind, []).append(_seconds(pid) - before)
    contender.stop()
    return taken


def _seconds(pid: int) -> float:
    """Processor time of a process so far."""
    import os

    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print(json.dumps(_run(json.loads(sys.argv[1]))))
