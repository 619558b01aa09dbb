"""`python -m benchmarks.copied`: what it saves that rewrites copy the column chunks that stay as they are.

Upserts of Arrow batches into copy-on-write tables of the benchmark's rows, and compactions of the same batches in merge-on-read tables,
each with chunks copied and without, one after the other: a tenth of the keys with every column new, the same with three of eleven columns
new, and 25,000 keys that are beside each other. Processor seconds and seconds, the least of `--repeats`. Both must leave the same rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks.checksum import checksum_of
from benchmarks.contenders.base import KEY, ORDERING
from benchmarks.data import SCHEMA, Prepared, prepare
from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.write.tasks import copying

DATA = Path(__file__).parent / "data"
NEW = ("quantity", "discount", ORDERING)
NEIGHBOURS = 25_000
NEVER = 2**62


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    prepared = prepare(DATA, given.rows)
    print(f"load (1, 5, 15 min): {', '.join(f'{value:.2f}' for value in os.getloadavg())}; {given.rows:,} rows\n")
    print("| | batch | copied, processor s | s | all encoded, processor s | s |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        for kind in ("cow", "mor"):
            made = _made(Path(folder) / kind, prepared, kind)
            for name, batch in _batches(prepared).items():
                _report(kind, name, Path(made.path), batch, given.repeats)
    return 0


def _made(folder: Path, prepared: Prepared, kind: str) -> HoodieTable:
    rows, lake = ds.dataset(prepared.source("base")), Lakehouse(str(folder))
    table = lake.create_table("b.t", schema=SCHEMA, record_key=[KEY], ordering_fields=[ORDERING], table_type=kind)
    table.bulk_insert(rows.scanner().to_reader())
    return table


def _batches(prepared: Prepared) -> dict[str, pa.Table]:
    every = ds.dataset(prepared.source("updates-10")).to_table()
    base = ds.dataset(prepared.source("base")).to_table()
    now = base.take(pc.index_in(every[KEY], value_set=base[KEY].combine_chunks()))
    some = now.combine_chunks()
    for name in NEW:
        some = some.set_column(some.column_names.index(name), name, every[name])
    near = base.slice(base.num_rows // 3, NEIGHBOURS)
    newer = pc.add(near[ORDERING], pa.scalar(500 * 86_400_000_000, pa.duration("us")))
    near = near.set_column(near.column_names.index(ORDERING), ORDERING, newer.cast(SCHEMA.field(ORDERING).type))
    return {"a tenth, all columns new": every, "a tenth, three columns new": some, f"{NEIGHBOURS:,} beside each other": near}


def _report(kind: str, name: str, pristine: Path, batch: pa.Table, repeats: int) -> None:
    least, sums = {}, {}
    for _ in range(repeats):
        for copied_from in (copying.COPIED_FROM, NEVER):
            measured, table = _once(kind, pristine, batch, copied_from)
            least[copied_from] = [min(pair) for pair in zip(measured, least.get(copied_from, measured), strict=True)]
            sums[copied_from] = checksum_of([table.to_arrow()], SCHEMA)
    assert len(set(sums.values())) == 1, f"copying made other rows: {sums}"
    figures = " | ".join(f"{value:.2f}" for pair in least.values() for value in pair)
    print(f"| {'upsert' if kind == 'cow' else 'compaction'} | {name} | {figures} |", flush=True)


def _once(kind: str, pristine: Path, batch: pa.Table, copied_from: int) -> tuple[tuple[float, float], HoodieTable]:
    path = pristine.with_name("copy")
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(pristine, path)
    table = HoodieTable.open(str(path))
    default, copying.COPIED_FROM = copying.COPIED_FROM, copied_from
    try:
        if kind == "cow":
            return _timed(lambda: table.upsert(batch)), table
        table.upsert(batch, options={"hoodie.compact.inline": False})
        return _timed(table.compact), table
    finally:
        copying.COPIED_FROM = default


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - used, time.perf_counter() - began


if __name__ == "__main__":
    raise SystemExit(main())
