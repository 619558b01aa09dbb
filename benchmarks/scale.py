"""`python -m benchmarks.scale`: upserts of small and large batches into tables of few and many files, by both routes.

A table of `--rows` rows in `--files` base files is made once. Each upsert takes a DataFrame of `--batches` rows, nine of ten of which are
stored, in a process of its own, on a pristine copy. Shown are seconds, seconds of all processors, the peak memory of the driver's Python
process (and what it had before the upsert), that of the largest Python worker, and the largest part that a task was sent. Memory is that of
no mapped file: staged rows are mapped. The sum of a column afterwards has to be what the batch makes of it: a wrong result has no time.

With `--runner SPARK` file tasks run in executors, as on a cluster; with LOCAL in threads of the driver.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.memory import ProcessInfo, anonymous, processes
from benchmarks.session import SessionSettings, start_session

ROUTES = {"SMALL": 1 << 40, "LARGE": 0}
_TEXT = "concat('a text of some length for row ', cast(id as string))"
_MEGABYTE = 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--batches", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--routes", nargs="+", choices=list(ROUTES), default=list(ROUTES))
    parser.add_argument("--runner", choices=["LOCAL", "SPARK"], default="LOCAL")
    parser.add_argument("--type", choices=["cow", "mor"], default="cow")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(_cell(**json.loads(given.cell))))
        return 0
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors; {given.rows:,} rows, {given.type}, tasks: {given.runner}\n")
    print("| files | batch | route | s | CPU s | driver before, MB | driver peak | worker peak | largest part |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for files in given.files:
            source = Path(folder) / f"of-{files}"
            _call(kind="make", path=str(source), rows=given.rows, files=files, table_type=given.type)
            for batch in given.batches:
                for route in given.routes:
                    path = Path(folder) / "copy"
                    shutil.copytree(source, path, copy_function=_copy)
                    cell = _call(kind="upsert", path=str(path), rows=given.rows, batch=batch, route=route, runner=given.runner)
                    shutil.rmtree(path)
                    print(f"| {files} | {batch:,} | {route} | " + " | ".join(str(value) for value in cell.values()) + " |", flush=True)
            shutil.rmtree(source)
    return 0


def _copy(source: str, target: str) -> None:
    (os.link if source.endswith(".parquet") else shutil.copy2)(source, target)


def _call(**cell: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--cell", json.dumps(cell)], stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _cell(kind: str, path: str, **what: Any) -> dict[str, Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(SessionSettings("4g", scratch), {})
        try:
            return _make(spark, path, **what) if kind == "make" else _upsert(spark, path, **what)
        finally:
            spark.stop()


def _make(spark: Any, path: str, rows: int, files: int, table_type: str) -> dict[str, Any]:
    from lakehouse_engine.storage.local import LocalStorage
    from lakehouse_engine.table import HoodieTable
    from lakehouse_engine.write.create import TableSpec, create_table

    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("price", pa.float64()), ("text", pa.string())])
    create_table(LocalStorage(path), TableSpec("t", schema, ["id"], [], [], table_type))
    HoodieTable.open(path, spark=spark).bulk_insert(_frame(spark, rows, 1, 1).repartition(files))
    return {}


def _frame(spark: Any, rows: int, step: int, n: int) -> Any:
    """Rows of every `step`th id."""
    return spark.range(rows).selectExpr(f"id * {step} as id").selectExpr(
        "format_string('key-%016d', id) as id", f"cast({n} as bigint) as n", "id * 0.5D as price", f"{_TEXT} as text"
    )


def _upsert(spark: Any, path: str, rows: int, batch: int, route: str, runner: str) -> dict[str, Any]:
    from lakehouse_engine.spark.tasks.parcels import Packing
    from lakehouse_engine.table import HoodieTable

    table, step = HoodieTable.open(path, spark=spark), max(1, rows * 10 // 9 // batch)
    options = {"lakehouse.write.broadcast.max.bytes": ROUTES[route], "lakehouse.task.runner": runner}
    largest, add = [0], Packing.add

    def counting(packing: Packing, data: bytes) -> None:
        largest[0] = max(largest[0], len(data))
        add(packing, data)

    Packing.add = counting  # type: ignore[method-assign]
    spark.range(10).mapInArrow(lambda batches: batches, "id long").collect()  # Python workers run
    with _Peaks() as peaks:
        began, used = time.monotonic(), _cpu()
        result = table.upsert(_frame(spark, batch, step, 2), options=options)
        seconds, used = time.monotonic() - began, _cpu() - used
    known = min(batch, -(-rows // step))
    assert result.route == route
    assert (result.updates, result.inserts) == (known, batch - known), result
    total = pc.sum(table.to_arrow(["n"]).column("n")).as_py()
    assert total == rows + known + 2 * (batch - known), total
    sizes = [peaks.before, peaks.driver, peaks.worker, largest[0]]
    return {"s": round(seconds, 1), "cpu": round(used, 1), **{str(n): round(size / _MEGABYTE, 1) for n, size in enumerate(sizes)}}


def _cpu() -> float:
    """Seconds of all processors that this process and those below it have used."""
    tick = os.sysconf("SC_CLK_TCK")
    return sum(_used(one.pid) for one in _tree(processes())) / tick


def _used(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15])


def _tree(found: list[ProcessInfo]) -> list[ProcessInfo]:
    below, grown = {os.getpid()}, True
    while grown:
        more = {one.pid for one in found if one.parent in below} - below
        below |= more
        grown = bool(more)
    return [one for one in found if one.pid in below]


class _Peaks:
    """Peak memory of this process and of the largest Python process below it."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.before = self.driver = self.worker = 0

    def __enter__(self) -> _Peaks:
        self.before = anonymous(os.getpid())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for one in _tree(processes()):
                if one.pid == os.getpid():
                    self.driver = max(self.driver, anonymous(one.pid))
                elif one.name.startswith("python"):
                    self.worker = max(self.worker, anonymous(one.pid))


if __name__ == "__main__":
    raise SystemExit(main())
