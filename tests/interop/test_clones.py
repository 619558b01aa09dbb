"""Apache Hudi reads a clone of ours as it reads the table that it is of, and goes on with it without touching that one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from tests.interop.client import HudiJudge, Query
from tests.interop.continuation import HudiWriter
from tests.interop.shared import NULLS_IN_LISTS
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import RICH, rich_row
from tests.support.table_model import Row


def rows(numbers: range, seed: int = 0) -> list[Row]:
    return [rich_row(number, seed=seed) for number in numbers]


def digest(path: str) -> dict[str, str]:
    files = [one for one in Path(path).rglob("*") if one.is_file() and ".locks" not in one.parts]
    return {str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_a_clone_and_goes_on_with_it(hudi: HudiJudge, tmp_path: Path, kind: str) -> None:
    lake = Lakehouse(str(tmp_path))
    source = lake.create_table(
        "shop.orders", schema=RICH, record_key=["id"], ordering_fields=["ts"], partition_by=["region"], table_type=kind
    )
    def arrow(made: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(made, schema=RICH)

    source.bulk_insert(arrow(rows(range(12))))
    source.upsert(arrow(rows(range(5, 20), seed=1)))
    source.delete(arrow(rows(range(2, 4))))
    lake.clone("shop.orders", "shop.copy", files="link")
    clone = lake.table("shop.copy")
    (theirs,) = hudi.read_all(clone.path, [Query()])
    assert_same_rows(theirs, clone.to_arrow(meta_columns=True))
    kept = digest(source.path)
    options = {
        "hoodie.table.name": "copy",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind == "mor" else "COPY_ON_WRITE",
    }
    writer = HudiWriter(judge=hudi, path=Path(clone.path), options=options, conf=NULLS_IN_LISTS)
    writer.upsert(arrow(rows(range(10, 25), seed=7)))
    assert digest(source.path) == kept
    expected = {row["id"]: row["ts"] for row in rows(range(12)) if row["id"] not in (2, 3)}
    expected |= dict.fromkeys(range(5, 20), 101) | dict.fromkeys(range(10, 25), 107)
    mine = clone.to_arrow(meta_columns=True)
    assert dict(zip(mine["id"].to_pylist(), mine["ts"].to_pylist(), strict=True)) == expected
    (theirs,) = hudi.read_all(clone.path, [Query()])
    assert_same_rows(theirs, mine)
    assert_same_rows(read_with_hudi_rs(clone.path), mine)
