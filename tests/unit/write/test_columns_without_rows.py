"""A batch that may bring columns brings them, whether or not one of its rows is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import SchemaIncompatibleError, UnsupportedTypeError

EVOLVE = {"hoodie.datasource.write.reconcile.schema": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("n", pa.int32())])
STORED = pa.table({"id": [1, 2], "ts": [5, 5], "n": [1, 2]}, schema=SCHEMA)
WIDER = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("n", pa.int64()), ("x", pa.string())])
LATE = pa.table({"id": [1], "ts": [0], "n": [7], "x": ["late"]}, schema=WIDER)

WRITES: dict[str, Callable[..., Any]] = {
    "bulk_insert": HoodieTable.bulk_insert,
    "insert": HoodieTable.insert,
    "upsert": HoodieTable.upsert,
    "insert_overwrite": HoodieTable.insert_overwrite,
}


@pytest.fixture(params=["cow", "mor", "bucket"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    lake = Lakehouse(str(tmp_path))
    lake.create_schema("s")
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"} if request.param == "bucket" else {}
    kind = "cow" if request.param == "cow" else "mor"
    made = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], table_type=kind, properties=bucket)
    made.upsert(STORED)
    return made


def widened(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([*list(SCHEMA)[:2], WIDER.field("n")])).append_column("x", pa.nulls(len(rows), pa.string()))


@pytest.mark.parametrize("write", WRITES)
def test_a_batch_without_rows(table: HoodieTable, write: str) -> None:
    result = WRITES[write](table, WIDER.empty_table(), options=EVOLVE)
    assert (result.inserts, result.updates) == (0, 0)
    assert result.instant is not None
    assert table.to_arrow().sort_by("id").equals(widened(STORED))
    count = len(table.history())
    assert WRITES[write](table, WIDER.empty_table(), options=EVOLVE).instant is None  # there is nothing new in it
    assert len(table.history()) == count


def test_rows_that_all_lose(table: HoodieTable) -> None:
    assert table.upsert(LATE, options=EVOLVE).instant is not None
    assert table.to_arrow().sort_by("id").equals(widened(STORED))
    table.upsert(LATE.set_column(1, "ts", pa.array([9], pa.int64())))
    assert table.to_arrow().sort_by("id")["x"].to_pylist() == ["late", None]


def test_some_columns_of_no_rows(table: HoodieTable) -> None:
    table.upsert(WIDER.empty_table().select(["id", "ts", "x"]), merge_update_columns=["x"], options=EVOLVE)
    assert table.schema.names == ["id", "ts", "n", "x"]
    assert table.schema.field("n").type == pa.int32()


def test_columns_that_are_left_out_are_no_change(table: HoodieTable) -> None:
    count = len(table.history())
    assert table.upsert(STORED.slice(0, 0).select(["id", "ts"]), options=EVOLVE).instant is None
    assert len(table.history()) == count


def test_without_being_asked_nothing_comes(table: HoodieTable) -> None:
    with pytest.raises(SchemaIncompatibleError):
        table.upsert(WIDER.empty_table())
    assert table.schema == SCHEMA


def test_a_write_id_is_of_such_a_commit_too(table: HoodieTable) -> None:
    first = table.upsert(WIDER.empty_table(), options=EVOLVE, write_id="w")
    assert table.upsert(WIDER.empty_table(), options=EVOLVE, write_id="w").instant == first.instant


@pytest.mark.parametrize("write", WRITES)
def test_a_column_of_nulls_without_a_type_has_that_of_the_table(table: HoodieTable, write: str) -> None:
    """As pandas gives one in which nothing is set."""
    WRITES[write](table, pa.table({"id": pa.array([7]), "ts": pa.array([6]), "N": pa.nulls(1)}))
    assert table.schema == SCHEMA
    assert table.to_arrow(columns=["id", "n"], filters=pc.field("id") == 7).to_pylist() == [{"id": 7, "n": None}]
    with pytest.raises(UnsupportedTypeError, match="'x' has the type null"):
        WRITES[write](table, pa.table({"id": [8], "ts": [6], "n": [1], "x": pa.nulls(1)}), options=EVOLVE)


NESTED = pa.schema([
    ("id", pa.int64()),
    ("tags", pa.list_(pa.field("element", pa.string()))),
    ("counts", pa.map_(pa.string(), pa.field("value", pa.int32()))),
    ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.struct([("c", pa.date32())]))))])),
])
UNTYPED = {
    "tags": pa.array([[]], pa.list_(pa.null())),
    "counts": pa.array([[("k", None)]], pa.map_(pa.string(), pa.null())),
    "s": pa.array([{"a": None, "b": [{"c": None}]}], pa.struct([("a", pa.null()), ("b", pa.list_(pa.struct([("c", pa.null())])))])),
}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_types_inside_of_columns_that_a_batch_has_not_are_those_of_the_table(tmp_path: Path, kind: str) -> None:
    """As Spark gives `array()`, `map()` and `named_struct('a', null)`, and pandas a list in which nothing is."""
    lake = Lakehouse(str(tmp_path))
    table = lake.create_table("s.t", schema=NESTED, record_key=["id"], table_type=kind)
    wanted = []
    for number, write in enumerate(WRITES.values()):
        rows = pa.table({"id": [number], **UNTYPED})
        write(table, rows)
        wanted = [*rows.to_pylist()] if write is HoodieTable.insert_overwrite else [*wanted, *rows.to_pylist()]
    assert table.schema == NESTED
    assert table.to_arrow().sort_by("id").to_pylist() == wanted
    more = pa.array([{"a": 1, "x": None}], pa.struct([("a", pa.int32()), ("x", pa.null())]))
    with pytest.raises(UnsupportedTypeError, match=r"'s\.x' has the type null"):
        table.upsert(pa.table({"id": [9], "s": more}), merge_update_columns=["s"], options=EVOLVE)
