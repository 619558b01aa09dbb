"""Rows that say of themselves that they are deletions: only `bulk_insert` stores them, as in Apache Hudi 0.15 and 1.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse

MODELS = "org.apache.hudi.common.model."
KINDS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "_hoodie_is_deleted": ("_hoodie_is_deleted", True, {}),
    "a marker": ("gone", "yes", {"hoodie.payload.delete.field": "gone", "hoodie.payload.delete.marker": "yes"}),
    "Op": ("Op", "D", {"hoodie.datasource.write.payload.class": MODELS + "AWSDmsAvroPayload"}),
}
"""The column, what it holds in a row that deletes, and properties of the table."""
ROUTES = {"at once": {}, "in shares": {"lakehouse.write.broadcast.max.bytes": 0}}
OVERWRITES = ("insert_overwrite", "insert_overwrite_table")


def make(folder: Path, kind: str, marks: str, **more: Any) -> HoodieTable:
    column, value, properties = KINDS[marks]
    fields = [("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64()), ("p", pa.string()), (column, pa.scalar(value).type)]
    given = {"record_key": ["id"], "ordering_fields": ["ts"], "partition_by": ["p"], "table_type": kind}
    given["properties"] = {**properties, **more.pop("properties", {})}
    return Lakehouse(str(folder)).create_table("s.t", schema=pa.schema(fields), **{**given, **more})


def rows(table: HoodieTable, *given: tuple[int, str, int, str]) -> pa.Table:
    """A row is a deletion if it says `gone`."""
    column = table.schema.names[-1]
    value = {"_hoodie_is_deleted": True, "gone": "yes", "Op": "d"}[column]
    made = [{"id": id, "v": v, "ts": ts, "p": p, column: value if v == "gone" else None} for id, v, ts, p in given]
    return pa.Table.from_pylist(made, schema=table.schema)


def stored(table: HoodieTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(["id", "v", "p"]).to_pylist())


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("marks", KINDS)
def test_all_operations_but_bulk_insert_leave_them_out(tmp_path: Path, marks: str, kind: str, route: str) -> None:
    options = ROUTES[route]
    for number, operation in enumerate(("insert", "upsert", *OVERWRITES, "bulk_insert", "dropping")):
        table = make(tmp_path / str(number), kind, marks)
        given = rows(table, (1, "a", 1, "x"), (9, "gone", 1, "x"))
        if operation == "dropping":
            table.bulk_insert(given, drop_deletions=True, options=options)
        else:
            getattr(table, operation)(given, options=options)
        live = [(1, "a", "x")] + ([(9, "gone", "x")] if operation == "bulk_insert" else [])
        assert stored(HoodieTable.open(str(tmp_path / str(number) / "s" / "t"))) == live, operation


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_overwrites_empty_the_partitions_that_only_deletions_come_to(tmp_path: Path, index: str, kind: str, route: str) -> None:
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table = make(tmp_path, kind, "_hoodie_is_deleted", properties=properties)
    table.upsert(rows(table, (1, "a", 1, "x"), (2, "b", 1, "y"), (3, "c", 1, "z")))
    table.insert_overwrite(rows(table, (1, "A", 2, "x"), (9, "gone", 2, "x"), (2, "gone", 2, "y")), options=ROUTES[route])
    assert stored(table) == [(1, "A", "x"), (3, "c", "z")]
    table.insert_overwrite_table(rows(table, (3, "gone", 2, "z")), options=ROUTES[route])
    assert stored(table) == []


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_of_rows_of_one_key_the_newest_decides_before_deletions_are_left_out(tmp_path: Path, kind: str, route: str) -> None:
    """As an upsert into an empty table does."""
    given = [(1, "old", 1, "x"), (1, "gone", 2, "x"), (2, "gone", 1, "x"), (2, "new", 2, "x"), (3, "c", 1, "x")]
    for number, operation in enumerate(("upsert", "insert", "bulk_insert", *OVERWRITES)):
        table = make(tmp_path / str(number), kind, "_hoodie_is_deleted")
        more = {"drop_deletions": True} if operation == "bulk_insert" else {}
        options = {"hoodie.combine.before.insert": "true", **ROUTES[route]}
        getattr(table, operation)(rows(table, *given), options=options, **more)
        assert stored(table) == [(2, "new", "x"), (3, "c", "x")], operation


def test_rows_that_are_replaced_by_their_numbers_and_by_insert_leave_them_out(tmp_path: Path) -> None:
    table = make(tmp_path, "cow", "Op")
    table.upsert(rows(table, (1, "a", 1, "x"), (2, "b", 1, "y")))
    table.replace_rows(rows(table, (1, "A", 2, "x"), (5, "gone", 2, "x")), replaced=table.to_arrow(meta_columns=True))
    assert stored(table) == [(1, "A", "x")]
