"""`python -m benchmarks.logged_reads`: what a Spark read of logs that nobody compacted costs, decoded by the driver and by executors, and
their compaction, by threads of the driver and by tasks of executors.

A merge-on-read table of `--rows` rows in `--partitions` partitions, and `--logged` log rows on it, is read by two columns and by all, each
way in a process of its own, and a copy of it compacted; of each the seconds, CPU seconds of the process and its children, and how much the
driver's Python process grew. Each reading is run twice: the driver keeps what it decoded. `--before` also does so with an older checkout (a
directory for PYTHONPATH), which has one way only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakehouse_engine import HoodieTable
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write.create import TableSpec, create_table

REPOSITORY = Path(__file__).resolve().parents[1]
BATCH = 500_000
LIMIT = "lakehouse.read.logs.driver.max.bytes"
WAYS = {"driver": 10**15, "executors": 0}
PROBE = """
import json, os, re, resource, shutil, sys, time
path, way, limit, folder = sys.argv[1:]
from lakehouse_engine import HoodieTable
from pyspark.sql import SparkSession
options = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.local.dir": folder}
options["spark.driver.memory"] = "4g"
builder = SparkSession.builder
for key, value in options.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.range(1000).mapInArrow(lambda batches: batches, "id long").count()
def status(pid, name):
    return int(re.search(name + r":\\s+(\\d+)", open(f"/proc/{pid}/status").read()).group(1)) * 1024
def family():
    kids = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            kids.setdefault(int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]), []).append(int(pid))
        except OSError:
            pass
    found, pending = [], [os.getpid()]
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending += kids.get(pid, [])
    return found
def cpu():
    total = 0
    for pid in family():
        try:
            total += sum(map(int, open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")
given = {} if way == "before" else {"options": {"lakehouse.read.logs.driver.max.bytes": int(limit)}}
table = HoodieTable.open(path, spark=spark, **given)
found = []
def measured(what, act):
    open("/proc/self/clear_refs", "w").write("5")
    before, began, spent = status("self", "VmRSS"), time.perf_counter(), cpu()
    answer = act()
    seconds, used = time.perf_counter() - began, cpu() - spent
    found.append([what, seconds, used, (status("self", "VmHWM") - before) / 1e6, answer])
for what in ("two", "two", "all", "all"):
    columns = ["id", "n"] if what == "two" else table.schema.names
    told = {"columns": columns} if way != "before" else {}
    sums = [f"sum(hash({name})) as s{number}" for number, name in enumerate(columns)]
    measured(f"{what} columns", lambda: hash(tuple(table.dataframe(**told).select(*columns).selectExpr("count(*)", *sums).collect()[0])))
copied = shutil.copytree(path, f"{folder}/{way}")
runner = {"driver": {"lakehouse.task.runner": "LOCAL"}, "executors": {"lakehouse.task.runner": "SPARK"}}.get(way, {})
compacted = HoodieTable.open(copied, spark=spark, options=runner)
measured("compaction", compacted.compact)
row = compacted.dataframe(query="read_optimized").selectExpr("count(*)", "sum(hash(id, n))").collect()[0]
found[-1][-1] = hash(tuple(row))
shutil.rmtree(copied)
print(json.dumps(found))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--logged", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        size = make(path, given.rows, given.logged, given.partitions)
        print(f"load {os.getloadavg()[0]:.1f}; {given.rows:,} rows, {given.logged:,} logged in {size / 1e6:.0f} MB\n")
        print("| by | what | seconds | CPU seconds | driver's Python, MB more |\n|---|---|---|---|---|")
        answers = set()
        for way in ("before", *WAYS) if given.before else tuple(WAYS):
            checkout = given.before if way == "before" else REPOSITORY
            for what, seconds, cpu, grown, answer in probe(path, checkout, way, folder):
                print(f"| {way} | {what} | {seconds:.2f} | {cpu:.2f} | {grown:.0f} |")
                answers.add((what, answer))
    if len(answers) != 3:
        print("the ways differ in what they read")
        return 1
    return 0


def rows(numbers: np.ndarray, partitions: int, value: int) -> pa.Table:
    texts = [pa.array(np.char.add(f"text {column} of ", (numbers % 1000).astype(str))) for column in range(4)]
    partition = pa.array(np.char.add("p", (numbers % partitions).astype(str)))
    names = ["id", "part", "n", "x", *(f"s{column}" for column in range(4))]
    keys = pa.array(np.char.add("key-", np.char.zfill(numbers.astype(str), 16)))
    return pa.table([keys, partition, pa.array(numbers + value), pa.array(numbers * 0.5), *texts], names=names)


def make(path: Path, count: int, logged: int, partitions: int) -> int:
    """Make the table; the bytes of its logs."""
    schema = rows(np.arange(1), partitions, 0).schema
    create_table(LocalStorage(str(path)), TableSpec("t", schema, ["id"], [], ["part"], "mor", properties={"hoodie.index.type": "SIMPLE"}))
    table = HoodieTable.open(str(path))
    table.bulk_insert(rows(np.arange(count), partitions, 0))
    chosen = np.random.default_rng(1).permutation(np.arange(logged) % count)
    for number, start in enumerate(range(0, logged, BATCH)):
        table.upsert(rows(chosen[start : start + BATCH], partitions, 1 + number))
    return sum(log.stat().st_size for log in path.rglob(".*.log.*"))


def probe(path: Path, checkout: Path, way: str, folder: str) -> list[tuple[str, float, float, float, int]]:
    arguments = [sys.executable, "-c", PROBE, str(path), way, str(WAYS.get(way, 0)), folder]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYSPARK_PYTHON": sys.executable, "PYTHONHASHSEED": "0"}
    answer = subprocess.run(arguments, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    return [tuple(row) for row in json.loads(answer.stdout.splitlines()[-1])]


if __name__ == "__main__":
    raise SystemExit(main())
