"""`python -m benchmarks.recovery`: make tables, time what brings them back, print and store the report."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark import SparkContext

from benchmarks.client import REPOSITORY
from benchmarks.data import prepare
from benchmarks.recovery import local, versus_hudi
from benchmarks.recovery.figures import Figure, as_json, judge, markdown
from benchmarks.series import prepare_series

FOLDER = REPOSITORY / "benchmarks"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when every figure was measured, 1 when something failed. Goals that are missed fail nothing."""
    given = _parser().parse_args(arguments)
    sizes, rows = _sizes(given), given.rows or (200_000 if given.quick else 5_000_000)
    results = given.results.resolve() / time.strftime("recovery-%Y%m%dT%H%M%SZ", time.gmtime())
    results.mkdir(parents=True)
    head = {
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load at start (1, 5, 15 min)": ", ".join(f"{value:.2f}" for value in os.getloadavg()),
        "tables": f"{sizes.files:,} files; {', '.join(f'{one:,}' for one in sizes.timelines)} instants; {rows:,} rows beside Hudi",
        "runs": f"1 warm-up, {sizes.repeats} timed, median; each on a fresh copy",
    }
    print("\n".join(f"{key}: {value}" for key, value in head.items()), flush=True)
    root = given.data.resolve() / "tables" / "recovery"
    shutil.rmtree(root, ignore_errors=True)
    limits, ratios = local.limits(sizes), local.ratios(sizes) + versus_hudi.ratios()
    found: list[Figure] = []
    text = ""
    for figure in _figures(given, sizes, rows, root, results):
        print(f"  {figure.name}: {figure.error or f'{figure.median:.3f} s'}", flush=True)
        found.append(figure)
        goals = judge(found, limits, ratios)
        text = markdown(head, found, goals)
        (results / "report.md").write_text(text)
        (results / "report.json").write_text(json.dumps(as_json(head, found, goals), indent=1))
    shutil.rmtree(root, ignore_errors=True)
    print(f"\n{text}\nstored in {results.relative_to(REPOSITORY) if results.is_relative_to(REPOSITORY) else results}")
    return 1 if any(figure.error for figure in found) else 0


def _figures(given: argparse.Namespace, sizes: local.Sizes, rows: int, root: Path, results: Path) -> Iterator[Figure]:
    if "local" in given.parts:
        yield from local.figures(root, sizes)
    if "hudi" in given.parts or "ours" in given.parts:
        prepared = prepare_series(prepare(given.data.resolve(), rows))
        setting = versus_hudi.Setting(prepared, root, results, given.memory, sizes.repeats)
        yield from versus_hudi.figures(setting, hudi="hudi" in given.parts)
    if SparkContext._gateway is not None:
        yield Figure("no JVM", error="a JVM was started in this process")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 files, 100 and 1,000 instants, 200,000 rows beside Hudi")
    parser.add_argument("--files", type=int, help="files of the table with the savepoint (default 10000)")
    parser.add_argument("--instants", type=int, nargs="+", help="lengths of timelines (default 1000 10000); the first is archived")
    parser.add_argument("--rows", type=int, help="rows of the table beside Hudi (default 5000000)")
    parser.add_argument("--parts", nargs="+", choices=["local", "ours", "hudi"], default=["local", "hudi"], help="hudi includes ours")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (default 3)")
    parser.add_argument("--memory", default="6g", help="Spark driver memory for Hudi (default 6g)")
    parser.add_argument("--data", type=Path, default=FOLDER / "data", help="folder of prepared data and of the tables under test")
    parser.add_argument("--results", type=Path, default=FOLDER / "results", help="folder of reports and logs")
    return parser


def _sizes(given: argparse.Namespace) -> local.Sizes:
    files = given.files or (1_000 if given.quick else 10_000)
    timelines = tuple(given.instants or ((100, 1_000) if given.quick else (1_000, 10_000)))
    if files < 100 or min(timelines) < 50 or given.repeats < 1:
        raise SystemExit(f"--files {files} --instants {min(timelines)} --repeats {given.repeats}: at least 100, 50 and 1")
    return local.Sizes(files, timelines, given.repeats)


if __name__ == "__main__":
    sys.exit(main())
