"""`python -m benchmarks.look_ups`: processor time of upserts into tables of more and more files, with and without a record index.

A table of each number of files is filled with random keys, so that the bounds of no file rule a key out. Two batches are upserted into it:
one row that is stored, and 10,000 rows with new keys. A new process writes each (`cold`), then repeats it (`warm`: it knows the files'
footers). Processor time is that of the writing process, which depends little on what else the machine does. Beside it stands what building
the index took.

`--keys 10000000`: what building the record index of so many keys takes, in files of a million. `--commits 1000`: what a record index weighs
after so many upserts of one row into a table of 100,000 keys, before and after it is compacted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

Numbers = npt.NDArray[np.int64]

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
NEW_KEYS = 10_000
_FIRST_NEW = 2**62
"""Numbers of stored keys are below it."""
_FILE_KEYS = 1_000_000
_ROW_BYTES = 24
"""What a writer reckons a row of `SCHEMA` to weigh."""
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
    given = parser.parse_args()
    if given.keys:
        return _report_builds(given.keys)
    if given.commits:
        return _report_commits(given.commits)
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
                _report(copy, way, given.repeats)
                shutil.rmtree(copy)
    return 0


def _report(path: Path, way: str, repeats: int) -> None:
    seconds, peak = _apart(build, path, WAYS[way]) if WAYS[way] else (0.0, 0.0)
    options = {"hoodie.index.type": "RECORD_INDEX"} if "record_index" in WAYS[way] else {}
    shown = [milliseconds for kind in ("one", "new") for milliseconds in _apart(upserts, path, kind, options, repeats)]
    files = len(HoodieTable.open(str(path)).state.view.latest_slices())
    print(f"| {files:,} | {way} | {' | '.join(f'{one:.0f}' for one in shown)} | {seconds:.1f} | {peak:.0f} |", flush=True)


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
        for number, rows in enumerate(_batches("new", count)):
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


def fill(path: Path, table_type: str, version: int, files: int, rows: int, partitions: int) -> None:
    """Make a table of about so many files."""
    properties = {"hoodie.parquet.small.file.limit": "0", "hoodie.index.type": "GLOBAL_SIMPLE"}
    spec = TableSpec("t", SCHEMA, ["id"], [], ["part"], table_type, properties=properties, version=TableVersion(version))
    create_table(LocalStorage(str(path)), spec)
    HoodieTable.open(str(path)).bulk_insert(
        _rows(_numbers(files * rows), min(partitions, files)), options={"hoodie.parquet.max.file.size": str(rows * _ROW_BYTES)}
    )


def _numbers(count: int) -> Numbers:
    """Numbers of the stored keys: those of a smaller count are the first ones of a larger."""
    return np.random.default_rng(1).integers(0, _FIRST_NEW, count)


def _rows(numbers: Numbers, partitions: int) -> pa.Table:
    keys, parts = np.char.mod("%016x", numbers), np.char.mod("p%03d", np.arange(len(numbers)) % partitions)
    return pa.table([pa.array(keys, pa.string()), pa.array(parts, pa.string()), pa.array(numbers)], schema=SCHEMA)


def build(path: Path, partitions: list[str]) -> tuple[float, float]:
    """Seconds of processor time, and MiB of memory at most."""
    begin = time.process_time()
    HoodieTable.open(str(path)).rebuild_metadata(partitions)
    return time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def upserts(path: Path, kind: str, options: dict[str, str], repeats: int) -> tuple[float, float]:
    """Milliseconds of processor time: of the first upsert of this process, and the median of more."""
    with tempfile.TemporaryDirectory() as other:  # what a process does once is done there
        fill(Path(other) / "t", "cow", 9, 3, 10, 1)
        for number in range(3):
            HoodieTable.open(f"{other}/t").upsert(_rows(np.arange(number + 1), 1))
    taken = [_upsert(path, one, options) for one in _batches(kind, repeats + 1)]
    return taken[0] * 1000, median(taken[1:]) * 1000


def _batches(kind: str, count: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(time.time_ns())
    for number in range(count):
        if kind == "one":
            row = _rows(_numbers(count), 1).slice(number, 1)
            yield row.set_column(2, "n", pa.array([time.time_ns()]))
        else:
            yield _rows(rng.integers(_FIRST_NEW, 2**63, NEW_KEYS), 1)


def _upsert(path: Path, rows: pa.Table, options: dict[str, str]) -> float:
    begin = time.process_time()
    HoodieTable.open(str(path)).upsert(rows, options=options)
    return time.process_time() - begin


if __name__ == "__main__":
    raise SystemExit(main())
