"""The record index of a merge-on-read table with buckets, whose writes look no key up."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read import indexed
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.metadata_checks import check_metadata

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def batch(moments: Mapping[str, int], *, deleted: bool = False) -> pa.Table:
    return pa.table([list(moments), list(moments.values()), [deleted] * len(moments)], schema=SCHEMA)


@pytest.mark.parametrize("version", [TableVersion.SIX, TableVersion.NINE])
def test_keys_that_logs_add_and_delete_are_followed(version: TableVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "WORTH_ASKING", 0)
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], table_type="mor", properties=BUCKETS, version=version))
    table = HoodieTable(storage)
    table.upsert(batch({f"k{number}": 5 for number in range(8)}))
    build(storage, ["files", "record_index"], lock_timeout_ms=1000)
    steps = [
        (batch({"k1": 6, "n1": 5, "n2": 5}), "new keys beside an update"),
        (batch({"k2": 6, "n1": 6}, deleted=True), "deletions"),
        (batch({"k3": 1, "n2": 1}, deleted=True), "deletions that come late, and delete nothing"),
        (batch({"k2": 7, "n1": 7}), "deleted keys again"),
    ]
    for rows, what in steps:
        table.upsert(rows)
        assert check_metadata(storage), what
        for key in rows.column("id").to_pylist():
            is_there = key in table.to_arrow(["id"]).column("id").to_pylist()
            assert table.to_arrow(["id"], filters=pc.field("id") == key).num_rows == is_there, (what, key)
    assert table.to_arrow().num_rows == 10
