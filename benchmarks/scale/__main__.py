"""`python -m benchmarks.scale`: upserts of small and large batches into tables of few and many files, by both routes.

A table of `--rows` rows in `--files` base files is made once a contender. Each upsert takes a DataFrame of `--batches` rows, nine of ten
of which are stored, in a process of its own, on a pristine copy. Shown are seconds, seconds of all processors, the peak memory of the
driver's Python process (and what it had before the upsert), that of the largest Python worker, the largest part that a task was sent, and
the JVM's peak. Memory is that of no mapped file: staged rows are mapped. The sum of a column afterwards has to be what the batch makes of
it: a wrong result has no time.

With `--runner SPARK` file tasks run in executors, as on a cluster; with LOCAL in threads of the driver. `--contenders` takes Iceberg and
Hudi too, both copy-on-write, over the same rows in as many files; what takes longer than `--limit` seconds is said to.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.client import REPOSITORY
from benchmarks.contenders import CONTENDERS
from benchmarks.environments import Unavailable, interpreter, jars

ROUTES = {"SMALL": 1 << 40, "LARGE": 0}
_SHOWN = ("s", "cpu", "before", "driver", "worker", "part", "jvm")


def main() -> int:
    given = _parsed()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors; {given.rows:,} rows, {given.type}, tasks: {given.runner}\n")
    print(
        "| contender | files | batch | route | s | CPU s | driver before, MB | driver peak | worker peak | largest part | JVM peak |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        sep="\n",
    )
    for files in given.files:
        for contender in given.contenders:
            _measure(contender, files, given)
    return 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--batches", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--routes", nargs="+", choices=list(ROUTES), default=list(ROUTES))
    parser.add_argument("--runner", choices=["LOCAL", "SPARK"], default="LOCAL")
    parser.add_argument("--type", choices=["cow", "mor"], default="cow")
    parser.add_argument("--contenders", nargs="+", choices=["ours", "iceberg", "hudi"], default=["ours"])
    parser.add_argument("--memory", default="4g", help="of the JVM")
    parser.add_argument("--limit", type=int, default=1800, help="seconds that a process may take")
    parser.add_argument("--folder", help="where the tables are made, one at a time")
    return parser.parse_args()


def _measure(contender: str, files: int, given: argparse.Namespace) -> None:
    """A row for each batch (of ours: and route)."""
    routes = given.routes if contender == "ours" else [None]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        # Each upsert finds the table under the path that it was made at: Iceberg's files name it.
        path, kept = Path(folder) / "lake" / "bench" / "orders", Path(folder) / "kept"
        table = {"contender": contender, "rows": given.rows, "memory": given.memory, "path": str(path)}
        made = _call(given.limit, kind="make", files=files, table_type=given.type, **table)
        if "failed" in made:
            print(f"| {contender} | {files} | not made: {made['failed']} |", flush=True)
            return
        path.rename(kept)
        for batch in given.batches:
            for route in routes:
                shutil.copytree(kept, path, copy_function=_copy)
                options = {"lakehouse.write.broadcast.max.bytes": ROUTES[route], "lakehouse.task.runner": given.runner} if route else {}
                found = _call(given.limit, kind="upsert", batch=batch, options=options, route=route, **table)
                shutil.rmtree(path)
                shown = [found["failed"]] if "failed" in found else [str(found.get(name, "")) for name in _SHOWN]
                print(f"| {contender} | {files} | {batch:,} | {route or ''} | " + " | ".join(shown) + " |", flush=True)


def _copy(source: str, target: str) -> None:
    (os.link if source.endswith(".parquet") else shutil.copy2)(source, target)


def _call(limit: int, **cell: Any) -> dict[str, Any]:
    """What a cell says that runs in a process of its own; `failed` is why it says nothing."""
    spec = CONTENDERS[cell["contender"]]
    try:
        said = json.dumps(cell | {"jars": jars(spec.artifacts)})
        command = [interpreter(spec.environment), "-m", "benchmarks.scale.cell", said]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True, timeout=limit, cwd=REPOSITORY)
    except Unavailable as reason:
        return {"failed": str(reason)}
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit} s"}
    if done.returncode:
        return {"failed": f"exit code {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    raise SystemExit(main())
