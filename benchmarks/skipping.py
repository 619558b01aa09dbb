"""`python -m benchmarks.skipping`: what reads of a part of a table cost, and how many files they open.

A table of `--partitions` days with `--rows` rows each is made once by every contender, from the same formulas: ours copy-on-write and
merge-on-read (with logs in every tenth partition), plain partitioned Parquet, Iceberg and Delta on Spark. Each question is asked in a
fresh process (its session has run one small job): once cold, from opening the table on, then `--repeats` times warm, of which the median
is shown. Ours is pinned anew by every statement; the others keep what Spark keeps of a table that is known.

Files are those that the scans of Spark's plan say they read, beside how many hold a row of the answer; of Arrow reads nobody counts.
Calls are those of our storage, in the cold statement and in a warm one. A wrong answer has no time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.session import SessionSettings, start_session

REPOSITORY = Path(__file__).resolve().parents[1]
FIRST = "2020-01-01"
TABLES = {"cow": "ours, copy-on-write", "mor": "ours, merge-on-read", "parquet": "plain Parquet", "iceberg": "Iceberg", "delta": "Delta"}
_FORMATS = {"iceberg": "iceberg", "delta": "delta"}
"""Contenders of the other benchmark, which say what environment and jars these need."""

_EXPRESSIONS = ("id", "(id * 7919) % 1000 as n", "id * 0.5D as price")
_COMMITS, _LOGGED, _LOG_ROWS = 50, 10, 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=50_000, help="of each partition")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--questions", nargs="+", choices=list(_QUESTIONS), default=list(_QUESTIONS))
    parser.add_argument("--together", action="store_true", help="one process a table: cold is then only the first reading by its session")
    parser.add_argument("--folder", type=Path, help="where the tables are made, and found again; a temporary folder otherwise")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(_cell(**json.loads(given.cell))))
        return 0
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors; {given.partitions:,} partitions of {given.rows:,} rows\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        return _report(given, given.folder or Path(scratch), Path(scratch))


def _report(given: argparse.Namespace, folder: Path, scratch: Path) -> int:
    size = {"partitions": given.partitions, "rows": given.rows}
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in given.questions}
    wrong = 0
    for table in given.tables:
        path = folder / f"{table}-{given.partitions}-{given.rows}"
        try:
            environment = _environment(table)
            if not path.is_dir():
                made = _call(environment, kind="make", table=table, path=str(path), **size)
                print(f"made: {TABLES[table]}, {made['seconds']:.0f} s", flush=True)
            asked = [one for one in given.questions if table in ("cow", "mor", "parquet") or not _QUESTIONS[one].arrow]
            for questions in [asked] if given.together else [[one] for one in asked]:
                cells = _call(environment, kind="ask", table=table, path=str(path), questions=questions, repeats=given.repeats, **size)
                for question, cell in cells.items():
                    expected = _QUESTIONS[question].expected(given.partitions, given.rows)
                    if cell["answer"] == expected:
                        found[question][table] = cell
                        print(f"{TABLES[table]}, {question}: {cell['cold']:.2f} s cold, {cell['warm']:.3f} s warm", flush=True)
                    else:
                        print(f"{TABLES[table]}, {question}: the answer is {cell['answer']}, not {expected}", flush=True)
                        wrong += 1
        except _Unavailable as error:
            print(f"skipped: {TABLES[table]}: {error}", flush=True)
    for line in _rendered(found, given.partitions):
        print(line)
    return 1 if wrong else 0


class _Unavailable(Exception):
    """A contender cannot be had here."""


def _environment(table: str) -> tuple[str, list[str]]:
    """The interpreter and the jars of a contender."""
    if table not in _FORMATS:
        return sys.executable, []
    from benchmarks.contenders import CONTENDERS
    from benchmarks.environments import Unavailable, interpreter, jars

    spec = CONTENDERS[_FORMATS[table]]
    try:
        return interpreter(spec.environment), jars(spec.artifacts)
    except Unavailable as error:
        raise _Unavailable(str(error)) from error


def _call(environment: tuple[str, list[str]], **cell: Any) -> dict[str, Any]:
    python, jars = environment
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TZ": "UTC", "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    variables.pop("SPARK_HOME", None)
    done = subprocess.run(
        [python, "-m", "benchmarks.skipping", "--cell", json.dumps({**cell, "jars": jars})],
        capture_output=True, check=False, text=True, env=variables,
    )  # fmt: skip
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line]
        raise _Unavailable(told[-1] if told else "it failed")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _rendered(found: dict[str, dict[str, dict[str, Any]]], partitions: int) -> list[str]:
    lines = ["", "| question | table | cold, s | warm, s | to plain Parquet, warm | files opened | match | storage calls, cold / warm |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for question, cells in found.items():
        floor = cells.get("parquet")
        for table, cell in cells.items():
            ratio = f"{cell['warm'] / floor['warm']:.2f}" if floor else ""
            files = "" if cell["files"] is None else str(cell["files"])
            calls = " / ".join(_told(one) for one in cell["calls"]) if cell["calls"] else ""
            match = _QUESTIONS[question].matches or partitions
            row = [question, TABLES[table], f"{cell['cold']:.2f}", f"{cell['warm']:.3f}", ratio, files, str(match), calls]
            lines.append("| " + " | ".join(row) + " |")
    return lines


def _told(calls: dict[str, int]) -> str:
    return f"{sum(calls.values())} ({', '.join(f'{count} {name}' for name, count in sorted(calls.items()))})"


# what is asked


class _Question:
    """`sql` has {t} for the table; `days` (numbers) are those that the answer is of, None all of them."""

    def __init__(self, sql: str, days: tuple[int, ...] | None, *, arrow: bool = False, key: bool = False) -> None:
        self.sql, self.days, self.arrow, self.key = sql, days, arrow, key
        self.matches = None if days is None else len(days)

    def expected(self, partitions: int, rows: int) -> list[float]:
        ids: Any
        if self.key:
            return _summed([_the_key(rows)])
        days = range(partitions) if self.days is None else self.days
        total = [0.0, 0.0, 0.0]
        for day in days:
            ids = range(day * rows, (day + 1) * rows)
            # n goes through all numbers below 1000 in each run of 1000 ids
            n = sum(one * 7919 % 1000 for one in ids) if rows % 1000 else rows // 1000 * 499_500
            total = [total[0] + rows, total[1] + n, total[2] + (ids[0] + ids[-1]) * rows / 4]
        return total


def _summed(ids: list[int]) -> list[float]:
    return [float(len(ids)), float(sum(one * 7919 % 1000 for one in ids)), sum(one * 0.5 for one in ids)]


def _the_key(rows: int) -> int:
    return 7 * rows + rows // 3


_SUMS = "select count(*), sum(n), sum(price) from {t}"
_QUESTIONS = {
    "one day, SQL": _Question(_SUMS + " where day = date '2020-01-08'", (7,)),
    "one day, Arrow": _Question("", (7,), arrow=True),
    "five days, SQL": _Question(_SUMS + " where day between date '2020-01-03' and date '2020-01-07'", (2, 3, 4, 5, 6)),
    "one key, SQL": _Question(_SUMS + " where id = {key}", (7,), key=True),
    "join with three days, SQL": _Question(_SUMS + " as t join days as d on t.day = d.day where d.picked = 1", (3, 5, 9)),
    "all, SQL": _Question(_SUMS, None),
}

# in the contender's process


def _cell(kind: str, table: str, path: str, jars: list[str], **what: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        settings = {"spark.sql.parquet.compression.codec": "zstd", **_settings(table, path)}
        spark = start_session(SessionSettings("4g", scratch, tuple(jars)), settings)
        try:
            return _make(spark, table, path, **what) if kind == "make" else _ask(spark, table, path, scratch, **what)
        finally:
            spark.stop()


def _settings(table: str, path: str) -> dict[str, str]:
    if table == "iceberg":
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": path,
        }
    if table == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    return {}


def _rows(spark: Any, partitions: int, rows: int) -> Any:
    """Whole days in each task, so that each has one file."""
    tasks = max(count for count in range(1, max(2, partitions // 25)) if partitions % count == 0)
    day = f"date_add(date '{FIRST}', cast(id div {rows} as int)) as day"
    return spark.range(0, partitions * rows, 1, tasks).selectExpr(*_EXPRESSIONS, day)


def _make(spark: Any, table: str, path: str, partitions: int, rows: int) -> dict[str, Any]:
    began = time.monotonic()
    if table in ("cow", "mor"):
        _make_ours(path, table, partitions, rows)
    elif table == "parquet":
        _rows(spark, partitions, rows).write.partitionBy("day").parquet(path)
    elif table == "delta":
        _rows(spark, partitions, rows).write.format("delta").partitionBy("day").save(path)
    else:
        spark.sql("create table lake.s.t (id bigint, n bigint, price double, day date) using iceberg partitioned by (day)"
                  " tblproperties ('write.parquet.compression-codec' = 'zstd', 'write.distribution-mode' = 'none')")  # fmt: skip
        _rows(spark, partitions, rows).sortWithinPartitions("day").writeTo("lake.s.t").append()
    return {"seconds": time.monotonic() - began}


def _make_ours(path: str, kind: str, partitions: int, rows: int) -> None:
    import pyarrow as pa

    from lakehouse_engine import Lakehouse

    lake = Lakehouse(path)
    lake.create_schema("s")
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("price", pa.float64()), ("day", pa.date32())])
    properties = {"hoodie.index.type": "SIMPLE", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    made = lake.create_table("s.t", schema=schema, record_key=["id"], partition_by=["day"], table_type=kind, properties=properties)
    for first in range(0, partitions, _COMMITS):
        made.bulk_insert(_arrow(schema, range(first, min(first + _COMMITS, partitions)), rows, rows))
    if kind == "mor":
        made.upsert(_arrow(schema, range(5, partitions, _LOGGED), rows, min(rows, _LOG_ROWS)))


def _arrow(schema: Any, days: range, rows: int, count: int) -> Any:
    """The first `count` rows of each day."""
    import numpy as np
    import pyarrow as pa

    start = (np.datetime64(FIRST) - np.datetime64("1970-01-01")).astype(np.int32)
    numbers = np.concatenate([np.arange(day * rows, day * rows + count, dtype=np.int64) for day in days])
    columns = [pa.array(numbers), pa.array(numbers * 7919 % 1000), pa.array(numbers * 0.5)]
    return pa.table([*columns, pa.array((start + numbers // rows).astype(np.int32)).cast(pa.date32())], schema=schema)


def _ask(
    spark: Any, table: str, path: str, scratch: str, questions: list[str], repeats: int, partitions: int, rows: int
) -> dict[str, Any]:
    calls = Counter[str]()
    days = ", ".join(f"(date_add(date '{FIRST}', {day}), {int(day in (3, 5, 9))})" for day in range(min(partitions, 100)))
    spark.sql(f"select * from values {days} as d(day, picked)").coalesce(1).write.parquet(f"{scratch}/days")
    if table in ("cow", "mor"):
        _count_calls(calls)
    return {one: _cells(spark.newSession(), table, path, f"{scratch}/days", one, repeats, rows, calls) for one in questions}


def _cells(
    spark: Any, table: str, path: str, small: str, question: str, repeats: int, rows: int, calls: Counter[str]
) -> dict[str, Any]:
    spark.read.parquet(small).createOrReplaceTempView("days")
    asked = _QUESTIONS[question]
    run, seconds, told, answer, frame = None, [], [], None, None
    for _ in range(1 + repeats):
        calls.clear()
        began = time.perf_counter()
        run = run or _reader(spark, table, path, asked, rows)
        found, frame = run()
        seconds.append(time.perf_counter() - began)
        told.append(dict(calls))
        if answer not in (None, found):
            raise ValueError(f"{question}: {found} after {answer}")
        answer = found
    files = None if frame is None else files_of(frame._jdf.queryExecution().executedPlan())
    ours = [told[0], told[-1]] if table in ("cow", "mor") else []
    return {"cold": seconds[0], "warm": statistics.median(seconds[1:]), "files": files, "calls": ours, "answer": answer}


def _reader(spark: Any, table: str, path: str, asked: _Question, rows: int) -> Any:
    """What asks once, and answers with sums and the DataFrame, if it was one."""
    if asked.arrow:
        return _arrow_reader(table, path)
    names = {"cow": "s.t", "mor": "s.t", "iceberg": "lake.s.t", "delta": f"delta.`{path}`", "parquet": "t"}
    text = asked.sql.format(t=names[table], key=_the_key(rows))
    if table in ("cow", "mor"):
        from lakehouse_engine import Lakehouse

        lake = Lakehouse(path, spark=spark)
        sql = lake.sql
    else:
        if table == "parquet":
            spark.read.parquet(path).createOrReplaceTempView("t")
        sql = spark.sql

    def run() -> tuple[list[float], Any]:
        frame = sql(text)
        return [float(value) for value in frame.collect()[0]], frame

    return run


def _arrow_reader(table: str, path: str) -> Any:
    import datetime as dt

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    day = pc.field("day") == dt.date(2020, 1, 8)
    columns = ["n", "price"]
    if table == "parquet":
        dataset = ds.dataset(path, partitioning=ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive"))
        read: Callable[[], Any] = partial(dataset.to_table, columns=columns, filter=day)
    else:
        from lakehouse_engine import HoodieTable

        read = partial(HoodieTable.open(f"{path}/s/t").to_arrow, columns, filters=day)

    def run() -> tuple[list[float], None]:
        rows = read()
        return [float(rows.num_rows), *(float(pc.sum(rows.column(name)).as_py()) for name in columns)], None

    return run


def _count_calls(calls: Counter[str]) -> None:
    """Count what is asked of our storage from here on."""
    from lakehouse_engine.storage.local import LocalStorage

    def counted(name: str) -> Any:
        original = getattr(LocalStorage, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return original(*arguments)

        return call

    for name in ("list", "head", "read", "open_input", "create", "open_output", "delete"):
        setattr(LocalStorage, name, counted(name))


def files_of(plan: Any) -> int:
    """Files that the scans of a plan that has run say they read; those of the small table of days are not counted."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return files_of(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return files_of(plan.plan())
    if kind == "InMemoryTableScanExec" or "/days" in (plan.relation().location().rootPaths().mkString() if _is_scan(kind) else ""):
        return 0
    metrics, own = plan.metrics(), 0
    for name in ("numFiles", "resultDataFiles"):
        if metrics.contains(name) and (_is_scan(kind) or kind == "BatchScanExec"):
            own += metrics.apply(name).value()
    children = plan.children()
    return int(own) + sum(files_of(children.apply(number)) for number in range(children.size()))


def _is_scan(kind: str) -> bool:
    return kind == "FileSourceScanExec"


if __name__ == "__main__":
    raise SystemExit(main())
