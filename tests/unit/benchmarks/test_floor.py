from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.checksum import checksum_of
from benchmarks.contenders.floor import META, Rewrite, Share, base_files, rewrite_share
from benchmarks.data import SCHEMA, prepare, read_tables


def hudi_like(table: pa.Table, file_name: str) -> pa.Table:
    count = table.num_rows
    meta = [
        ["20260101000000000"] * count,
        [f"20260101000000000_0_{row}" for row in range(count)],
        table["id"],
        [""] * count,
        [file_name] * count,
    ]
    return pa.table([*meta, *table.columns], names=[*META, *table.column_names])


def test_rewritten_files_hold_the_merged_rows_and_the_meta_columns(tmp_path):
    prepared = prepare(tmp_path / "data", 1_000)
    base = next(read_tables([prepared.source("base") + "/part-00000.parquet"]))
    table = tmp_path / "table"
    (table / ".hoodie").mkdir(parents=True)
    for number in range(2):
        pq.write_table(hudi_like(base.slice(number * 500, 500), f"f{number}.parquet"), table / f"f{number}.parquet")
    pq.write_table(base, table / ".hoodie" / "not-a-base-file.parquet")
    rewrites = [
        Rewrite(str(file), str(tmp_path / f"rewritten-{number}.parquet"), number) for number, file in enumerate(base_files(str(table)))
    ]
    rewrite_share(Share(prepared.source("updates-10"), tuple(rewrites)))
    targets = [rewrite.target for rewrite in rewrites]
    assert checksum_of(read_tables(targets), SCHEMA) == prepared.checksums["updates-10"]
    merged = pa.concat_tables([pq.read_table(target) for target in targets])
    assert merged.column_names[:5] == list(META)
    assert merged["_hoodie_record_key"].equals(merged["id"])
    assert pc.sum(pc.equal(merged["_hoodie_commit_time"], "20260101000000000")).as_py() == 900
    assert sorted(pc.unique(merged["_hoodie_file_name"]).to_pylist()) == ["rewritten-0.parquet", "rewritten-1.parquet"]
