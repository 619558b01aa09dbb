"""`python -m benchmarks.clustering`: a table of many small files is clustered along a Z-order curve of two columns, and asked.

5 M rows in 200 files become about `--into` files: by this engine (without a session of Spark), by Hudi's `run_clustering`, Delta's
`OPTIMIZE ZORDER BY`, Iceberg's `rewrite_data_files`, and, as a floor, by pyarrow alone, which reads the files of our table, sorts
(linearly) and writes with two threads. Each is in a process of its own, after a rehearsal on a small table. Shown are seconds,
processor seconds and the peak memory of the whole process tree; then for three selective queries on Spark the files opened (as the
scans of the plan say), the bytes that the processes asked the kernel for, and seconds, when warm. A wrong answer has no time.

`--memory` clusters a large table of ours with little memory for rows instead, and shows the peak of memory that is no mapped file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.client import REPOSITORY
from benchmarks.clustering.contenders import KINDS, TITLES
from benchmarks.clustering.data import QUERIES, Made, made
from benchmarks.clustering.memory import measured
from benchmarks.contenders import CONTENDERS
from benchmarks.environments import Unavailable, interpreter, jars

DATA = REPOSITORY / "benchmarks" / "data"
_SMALL_ROWS, _SMALL_FILES = 40_000, 4
_MEGABYTE = 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--into", type=int, default=32, help="files that the clustering is to make, about")
    parser.add_argument("--repeats", type=int, default=5, help="of each query")
    parser.add_argument("--contenders", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--limit", type=int, default=1800, help="seconds that a process may take")
    parser.add_argument("--folder", help="where tables are made; a temporary folder otherwise")
    parser.add_argument("--no-queries", action="store_true", help="cluster only")
    parser.add_argument("--memory", action="store_true", help="a table of --gigabytes with --megabytes of memory for rows")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="of rows in memory, of one group, with --memory")
    parser.add_argument("--megabytes", type=int, default=512, help="lakehouse.clustering.memory.bytes, with --memory")
    given = parser.parse_args()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder or _data()) as folder:
        if given.memory:
            return measured(Path(folder), given.gigabytes, given.megabytes)
        return _report(given, Path(folder))


def _data() -> Path:
    DATA.mkdir(exist_ok=True)
    return DATA


def _report(given: argparse.Namespace, folder: Path) -> int:
    rows = made(_data() / f"clustering-{given.rows}-{given.files}", given.rows, given.files)
    small = made(_data() / f"clustering-{_SMALL_ROWS}-{_SMALL_FILES}", _SMALL_ROWS, _SMALL_FILES)
    print(f"{given.rows:,} rows in {given.files} files, into {given.into}\n", flush=True)
    found, wrong = {}, False
    for table in given.contenders:
        try:
            found[table] = _measure(table, given, folder, rows, small)
            print(f"{TITLES[table]}: {_short(found[table])}", flush=True)
        except Unavailable as error:  # noqa: PERF203 - a contender takes minutes
            print(f"skipped: {TITLES[table]}: {error}", flush=True)
        except _WrongAnswer as error:
            print(f"wrong: {TITLES[table]}: {error}", flush=True)
            wrong = True
    print("\n".join(_rendered(found)))
    return 1 if wrong else 0


class _WrongAnswer(Exception):
    """A contender has other rows than it was given."""


def _measure(table: str, given: argparse.Namespace, folder: Path, rows: Made, small: Made) -> dict[str, Any]:
    path = str(folder / table)
    source = str(rows.folder)
    if table == "floor":
        # Of our files, which have meta columns.
        ours = _call(given, "ours", kind="make", path=f"{path}-ours", source=source, files=given.files)
        begun = _call(given, table, kind="make", path=path, source=f"{path}-ours/s/t", files=given.files)
        assert ours["bytes"] == begun["bytes"], (ours, begun)
    else:
        begun = _call(given, table, kind="make", path=path, source=source, files=given.files)
    target = begun["bytes"] // given.into
    done = _call(given, table, kind="cluster", path=path, small=str(small.folder), target=target, rehearsed=table != "floor")
    asked = {} if given.no_queries else _call(given, table, kind="ask", path=path, repeats=given.repeats)
    for name, answer in asked.items():
        if answer["answer"] != rows.answers[name]:
            raise _WrongAnswer(f"{name}: {answer['answer']}, not {rows.answers[name]}")
    return {"begun": begun, "done": done, "asked": asked}


def _call(given: argparse.Namespace, table: str, **cell: Any) -> dict[str, Any]:
    spec = CONTENDERS[table if table in CONTENDERS else "ours"]
    said = json.dumps(cell | {"table": table, "jars": jars(spec.artifacts)})
    command = [interpreter(spec.environment), "-m", "benchmarks.clustering.cell", said]
    variables = {**os.environ, "TZ": "UTC"}
    variables.pop("SPARK_HOME", None)
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=given.limit, cwd=REPOSITORY, env=variables
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{cell['kind']}: more than {given.limit} s") from error
    if done.returncode:
        sys.stderr.write(done.stderr)
        told = [line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line]
        raise Unavailable(f"{cell['kind']}: {told[-1] if told else f'exit code {done.returncode}'}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _short(found: dict[str, Any]) -> str:
    begun, done = found["begun"], found["done"]
    made = f"{begun['files']} files of {begun['bytes'] / _MEGABYTE:.0f} MB made in {begun['seconds']:.0f} s"
    return f"{made}, clustered in {done['seconds']:.1f} s"


def _rendered(found: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["", "| | s | to ours | processor s | peak, MB | files before | after | MB after |", "|---|---|---|---|---|---|---|---|"]
    base = found["ours"]["done"]["seconds"] if "ours" in found else None
    for table, cell in found.items():
        done = cell["done"]
        ratio = f"{done['seconds'] / base:.2f}" if base else ""
        row = [TITLES[table], f"{done['seconds']:.1f}", ratio, f"{done['cpu']:.1f}", f"{done['peak']:.0f}", str(cell["begun"]["files"])]
        lines.append("| " + " | ".join([*row, str(done["files"]), f"{done['bytes'] / _MEGABYTE:.0f}"]) + " |")
    lines += ["", "| query | | files opened | of | MB read | s, warm |", "|---|---|---|---|---|---|"]
    for name in QUERIES:
        for table, cell in found.items():
            if name in cell["asked"]:
                asked = cell["asked"][name]
                row = [name, TITLES[table], str(asked["files"]), str(cell["done"]["files"]), f"{asked['bytes'] / _MEGABYTE:.1f}"]
                lines.append("| " + " | ".join([*row, f"{asked['seconds']:.3f}"]) + " |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
