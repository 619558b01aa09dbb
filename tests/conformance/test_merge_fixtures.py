"""The fixtures' changes, merged here, give the rows that Hudi 0.15 stored in its copy-on-write tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.payloads import PAYLOADS as KNOWN
from tests.support.fixtures import spark_fixtures, unpack_spark_fixture

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string()), ("gone", pa.bool_())])
PAYLOADS = {
    "v6-0.15.0/cow_merge_overwrite_latest": "OverwriteWithLatestAvroPayload",
    "v6-0.15.0/cow_merge_default_payload": "DefaultHoodieRecordPayload",
    "v6-0.15.0/cow_merge_partial_update": "PartialUpdateAvroPayload",
}
UPDATED = ["newer", "older", "equal", "two_logs_up", "two_logs_down", "null_b"]
DELETED = ["del_newer", "del_older", "del_equal", "del_then_older", "del_then_newer"]
UPSERTS: list[list[tuple[Any, ...]]] = [
    [(key, 10, "base", "b0", False) for key in [*UPDATED, *DELETED, "null_ts"]],
    [
        ("newer", 11, "log1", "b0", False),
        ("older", 9, "log1", "b0", False),
        ("equal", 10, "log1", "b0", False),
        ("del_newer", 11, "log1", "b0", True),
        ("del_older", 9, "log1", "b0", True),
        ("del_equal", 10, "log1", "b0", True),
        ("two_logs_up", 12, "log1", "b0", False),
        ("two_logs_down", 14, "log1", "b0", False),
        ("del_then_older", 15, "log1", "b0", True),
        ("del_then_newer", 12, "log1", "b0", True),
        ("null_b", 11, "log1", None, False),
    ],
    [
        ("two_logs_up", 13, "log2", "b0", False),
        ("two_logs_down", 13, "log2", "b0", False),
        ("del_then_older", 14, "log2", "b0", False),
        ("del_then_newer", 13, "log2", "b0", False),
        ("null_b", 12, None, "b2", False),
        ("log_only", 3, "log2", "b0", False),
    ],
    [("two_logs_up", 13, "log3", "b0", False), ("two_logs_down", 1, "log3", "b0", False), ("log_only", 2, "log3", "b0", False)],
]
"""The upserts of the fixtures' recipe. Its delete operation is left out with the keys that it is about."""


def upsert(merger: RecordMerger, table: pa.Table, batch: pa.Table) -> pa.Table:
    ids = table.column("id").to_pylist()
    known = np.array([key in ids for key in batch.column("id").to_pylist()], bool)
    matched = batch.filter(pa.array(known))
    positions = [ids.index(key) for key in matched.column("id").to_pylist()]
    stored = table.take(pa.array(positions, pa.int64()))
    before, after = [stored.column("ts")], [matched.column("ts")]
    result = merger.combine(stored, matched, merger.wins(before, after))
    deletes = merger.deletes(before, after)
    gone = np.asarray(matched.column("gone")) & (True if deletes is None else deletes)
    kept = np.setdiff1d(np.arange(table.num_rows), positions)
    inserted = batch.filter(pa.array(~known))
    return pa.concat_tables([table.take(pa.array(kept)), result.filter(pa.array(~gone)), inserted])


@pytest.mark.parametrize("name", PAYLOADS)
def test_upserts_end_as_in_hudi(name: str, tmp_path: Path) -> None:
    if name not in spark_fixtures(table_type="cow"):
        pytest.skip("the fixture tables are not here (LAKEHOUSE_FIXTURES)")
    folder = unpack_spark_fixture(name, tmp_path)
    newest = max(folder.glob("part=p/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
    hudis = pq.ParquetFile(newest).read().rename_columns({"_hoodie_is_deleted": "gone"}).select(SCHEMA.names)
    table = SCHEMA.empty_table()
    for rows in UPSERTS:
        batch = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        table = upsert(KNOWN[PAYLOADS[name]].merger, table, batch)
    expected = {row["id"]: row for row in hudis.to_pylist() if row["id"] != "delete_op_then_older"}
    merged = {row["id"]: row for row in table.to_pylist()}
    assert merged == expected
