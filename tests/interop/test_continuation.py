"""The whole sequence of another writer, on a table that Hudi itself began: the control for the same sequence on ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.interop.client import HudiJudge
from tests.interop.continuation import HudiWriter
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    # Two file groups for each partition, so that clustering has something to do.
    "hoodie.parquet.small.file.limit": "0",
}


def rows(numbers: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:03d}" for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "amount": pa.array([number / 8 + ts for number in numbers], pa.float64()),
            "p": [f"p{number % 2}" for number in numbers],
        }
    )


def check(writer: HudiWriter, expected: pa.Table) -> None:
    seen = writer.read()
    assert writer.version() == "6"
    assert (writer.path / ".hoodie" / "metadata").is_dir() == writer.metadata_table
    assert_same_rows(user_columns(seen), expected)
    assert_same_rows(read_with_hudi_rs(writer.path), seen)


def test_a_table_that_hudi_began_goes_through_the_whole_sequence(hudi: HudiJudge, tmp_path: Path) -> None:
    writer = HudiWriter(judge=hudi, path=tmp_path / "t", options=OPTIONS)
    writer.insert(rows(range(8), 1))
    writer.insert(rows(range(8, 16), 1))
    writer.upsert(rows(range(4, 12), 2))
    writer.delete(rows(range(2), 3))
    expected = pa.concat_tables([rows(range(2, 4), 1), rows(range(4, 12), 2), rows(range(12, 16), 1)])
    check(writer, expected)

    pinned = writer.instants()[-1]
    writer.savepoint(pinned)
    writer.cluster("amount")
    assert len(writer.instants("replacecommit")) == 1
    check(writer, expected)
    writer.upsert(rows(range(14, 18), 4))
    writer.clean(1)
    assert len(writer.instants("clean")) == 1
    check(writer, pa.concat_tables([expected.slice(0, 12), rows(range(14, 18), 4)]))

    writer.restore(pinned)
    check(writer, expected)
    writer.delete_savepoint(pinned)
    writer.upsert(rows(range(2, 4), 5))
    check(writer, pa.concat_tables([rows(range(2, 4), 5), expected.slice(2)]))
