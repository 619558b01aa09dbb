"""`python -m benchmarks.look_ups`: processor time of upserts into tables of more and more files, with and without a record index.

A table of each number of files is filled with random keys, so that the bounds of no file rule a key out. Two batches are upserted into it:
one row that is stored, and 10,000 rows with new keys. A new process writes each (`cold`), then repeats it (`warm`: it knows the files'
footers). Processor time is that of the writing process, which depends little on what else the machine does. Beside it stands what building
the index took.

`--keys 10000000`: what building the record index of so many keys takes, in files of a million. `--commits 1000`: what a record index weighs
after so many upserts of one row into a table of 100,000 keys, before and after it is compacted. `--bucket`: requests in place of time.
`--hudi`: Hudi 1.2 upserts the same batches into a copy of each table; its time is that of its JVM, which has written two batches before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.look_ups.bucket import upsert_requests
from benchmarks.look_ups.hudi_run import hudi_upserts
from benchmarks.look_ups.tables import batches, build, fill, upserts
from lakehouse_engine.table import HoodieTable

_FILE_KEYS = 1_000_000
WAYS = {
    "none": [],
    "files": ["files"],
    "index": ["record_index"],
    "all": ["record_index", "column_stats", "partition_stats", "bloom_filters"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[3, 300, 2_000, 20_000])
    parser.add_argument("--rows", type=int, default=500, help="of a file")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["none", "index"], help="which metadata table the tables have")
    parser.add_argument("--version", type=int, default=9)
    parser.add_argument("--type", choices=["cow", "mor"], default="cow")
    parser.add_argument("--repeats", type=int, default=7, help="of each batch, of which the median is shown")
    parser.add_argument("--folder", type=Path, help="where the filled tables stay for the next run")
    parser.add_argument("--keys", type=int, nargs="+", help="build the record index of so many keys, and nothing else")
    parser.add_argument("--commits", type=int, help="make so many commits, and nothing else")
    parser.add_argument("--bucket", action="store_true", help="count requests of upserts in an object store, and nothing else")
    parser.add_argument("--hudi", action="store_true", help="beside Hudi 1.2 on Spark, with the same metadata table")
    given = parser.parse_args()
    if given.keys:
        return _report_builds(given.keys)
    if given.commits:
        return _report_commits(given.commits)
    if given.bucket:
        return _report_requests(given)
    print(f"{given.type}, version {given.version}, {given.partitions} partitions, {given.rows} rows a file; ms of processor time\n")
    print("| files | metadata table | 1 row, cold | 1 row, warm | 10,000 new, cold | 10,000 new, warm | build, s | build, peak MiB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for files in given.files:
            filled = (given.folder or Path(scratch)) / f"{given.type}{given.version}-{files}-{given.rows}-{given.partitions}"
            if not filled.exists():
                _apart(fill, filled, given.type, given.version, files, given.rows, given.partitions)
            for way in given.ways:
                copy = Path(scratch) / "copy"
                shutil.copytree(filled, copy)
                _report(copy, way, given)
                shutil.rmtree(copy)
    return 0


def _report(path: Path, way: str, given: argparse.Namespace) -> None:
    partitions, files = given.partitions, len(HoodieTable.open(str(path)).state.view.latest_slices())
    seconds, peak = _apart(build, path, WAYS[way]) if WAYS[way] else (0.0, 0.0)
    if given.hudi:
        beside = path.with_name("beside")
        shutil.copytree(path, beside)
        shown = hudi_upserts(beside, WAYS[way], given.repeats, partitions)
        print(f"| {files:,} | Hudi 1.2, {way} | {' | '.join(f'{one:.0f}' for one in shown)} | | |", flush=True)
        shutil.rmtree(beside)
    options = _index(way)
    shown = [milliseconds for kind in ("one", "new") for milliseconds in _apart(upserts, path, kind, options, given.repeats, partitions)]
    print(f"| {files:,} | {way} | {' | '.join(f'{one:.0f}' for one in shown)} | {seconds:.1f} | {peak:.0f} |", flush=True)


def _index(way: str) -> dict[str, str]:
    return {"hoodie.index.type": "RECORD_INDEX"} if "record_index" in WAYS[way] else {}


def _report_requests(given: argparse.Namespace) -> int:
    print("requests of an upsert, by a table that is opened for it\n")
    print("| files | metadata table | 1 row, first | then | 10,000 new, first | then |\n|---|---|---|---|---|---|")
    for files in given.files:
        for way in given.ways:
            made = _apart(upsert_requests, files, given.rows, given.partitions, WAYS[way], _index(way))
            print(f"| {files:,} | {way} | {' | '.join(map(str, made))} |", flush=True)
    return 0


def _report_builds(counts: list[int]) -> int:
    print("| keys | files | processor time, s | peak MiB | bytes a key |\n|---|---|---|---|---|")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            path, files = Path(folder) / "t", -(-count // _FILE_KEYS)
            _apart(fill, path, "cow", 9, files, count // files, 1)
            seconds, peak = _apart(build, path, ["record_index"])
            print(f"| {count:,} | {files} | {seconds:.1f} | {peak:.0f} | {_weight(path) / count:.1f} |", flush=True)
    return 0


def _report_commits(count: int) -> int:
    keys, options = 100_000, {"hoodie.index.type": "RECORD_INDEX"}
    print("| commits | bytes a key | files | timeline files |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        fill(path, "cow", 9, 10, keys // 10, 1)
        build(path, ["record_index"])
        for number, rows in enumerate(batches("new", count, 1)):
            HoodieTable.open(str(path)).upsert(rows.slice(0, 1), options=options)
            if number % (count // 5) in (0, count // 5 - 1):
                files = [one for one in _metadata_files(path) if "/record_index/" in str(one)]
                timeline = [one for one in _metadata_files(path) if "/timeline/" in str(one)]
                print(f"| {number + 1:,} | {_weight(path) / (keys + number + 1):.1f} | {len(files)} | {len(timeline)} |", flush=True)
    return 0


def _metadata_files(path: Path) -> Iterator[Path]:
    return (one for one in (path / ".hoodie/metadata").rglob("*") if one.is_file())


def _weight(path: Path) -> int:
    """Bytes of the record index."""
    return sum(one.stat().st_size for one in (path / ".hoodie/metadata/record_index").iterdir())


def _apart(work: Callable[..., Any], *given: object) -> Any:
    """Result of `work` in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


if __name__ == "__main__":
    raise SystemExit(main())
