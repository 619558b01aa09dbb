"""Rows at an ordering value of 1, then 10, then 5: the last one is late, whatever columns an update is of, and however it is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from tests.support.properties import edit_properties

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
ROUTES = {"at once": {}, "in shares": {"lakehouse.write.broadcast.max.bytes": 0}}
PARTIAL = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


def make(folder: Path, kind: str, **more: Any) -> HoodieTable:
    given = {"schema": SCHEMA, "record_key": ["id"], "ordering_fields": ["ts"], "table_type": kind} | more
    return Lakehouse(str(folder)).create_table("s.t", **given)


def row(v: str, ts: int, note: str | None = None) -> pa.Table:
    return pa.Table.from_pylist([{"id": 1, "v": v, "ts": ts, "note": note}], schema=SCHEMA)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("properties", [{}, PARTIAL, BUCKET], ids=["event time", "partial", "bucket"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_late_row_loses_where_an_update_of_some_columns_came_before_it(
    tmp_path: Path, kind: str, properties: dict[str, str], route: str
) -> None:
    table, options = make(tmp_path, kind, properties=properties), ROUTES[route]
    table.upsert(row("first", 1, "kept"), options=options)
    table.upsert(row("newest", 10, "other"), merge_update_columns=["v"], options=options)
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "newest", "ts": 10, "note": "kept"}]
    table.upsert(row("late", 5), merge_update_columns=["v"], options=options)
    table.upsert(row("late", 5).drop_columns(["note"]), options={**options, "hoodie.datasource.write.reconcile.schema": "true"})
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "newest", "ts": 10, "note": "kept"}]


def test_a_struct_that_holds_the_ordering_field_moves_and_a_key_that_is_one_does_not(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.struct([("t", pa.int64())]))])
    table = make(tmp_path / "a", "cow", schema=schema, ordering_fields=["n.t"])
    for v, t in (("first", 1), ("newest", 10), ("late", 5)):
        table.upsert(pa.Table.from_pylist([{"id": 1, "v": v, "n": {"t": t}}], schema=schema), merge_update_columns=["v"])
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "newest", "n": {"t": 10}}]
    table = make(tmp_path / "b", "cow", ordering_fields=["id"])
    table.upsert(row("first", 1))
    table.upsert(row("newest", 10), merge_update_columns=["v"])
    assert table.to_arrow(["v", "ts"]).to_pylist() == [{"v": "newest", "ts": 1}]


def test_an_ordering_field_that_counts_nowhere_stays_as_it_is_stored(tmp_path: Path) -> None:
    table = make(tmp_path, "cow")
    edit_properties(tmp_path / "s" / "t", {"hoodie.table.name=": "hoodie.record.merge.mode=COMMIT_TIME_ORDERING\nhoodie.table.name="})
    edit_properties(tmp_path / "s" / "t", {"DefaultHoodieRecordPayload": "OverwriteWithLatestAvroPayload"})
    table = HoodieTable.open(str(tmp_path / "s" / "t"))
    table.upsert(row("first", 1))
    table.upsert(row("second", 10), merge_update_columns=["v"])
    assert table.to_arrow(["v", "ts"]).to_pylist() == [{"v": "second", "ts": 1}]
