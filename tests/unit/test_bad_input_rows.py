"""Rows and schemas that a table cannot hold: refused before a file is written, the table as it was and open for the next write."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import (
    DuplicateKeyError,
    LakehouseError,
    MissingOptionError,
    OptionError,
    RecordKeyError,
    ReservedColumnError,
    SchemaIncompatibleError,
    UnknownOptionError,
    UnsupportedTypeError,
)
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import files_below, make_table, refused, rows_of

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32()), ("amount", pa.decimal128(10, 2))])
WRITES = ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]


def good(*ids: str) -> pa.Table:
    return pa.table({"id": ids, "n": range(len(ids)), "amount": [decimal.Decimal("1.00")] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    made = make_table(tmp_path / "t", SCHEMA)
    made.insert(good("kept"))
    return made


def changed(**columns: Any) -> pa.Table:
    """A good batch of two rows with other columns in the place of, or beside, its own; None leaves one out."""
    batch = good("x", "y")
    for name, column in columns.items():
        if name in batch.column_names:
            index = batch.column_names.index(name)
            batch = batch.remove_column(index) if column is None else batch.set_column(index, name, column)
        else:
            batch = batch.append_column(name, column)
    return batch


BAD: dict[str, tuple[Callable[[], pa.Table], type[LakehouseError]]] = {
    "null key": (lambda: changed(id=pa.array(["x", None])), RecordKeyError),
    "empty key": (lambda: changed(id=pa.array(["x", ""])), RecordKeyError),
    "missing key column": (lambda: changed(id=None), SchemaIncompatibleError),
    "missing column": (lambda: changed(n=None), SchemaIncompatibleError),
    "extra column": (lambda: changed(more=pa.array([1, 2])), SchemaIncompatibleError),
    "wider integer": (lambda: changed(n=pa.array([1, 2**40])), SchemaIncompatibleError),
    "text for a number": (lambda: changed(n=pa.array(["1", "2"])), SchemaIncompatibleError),
    "number for text": (lambda: changed(id=pa.array([1, 2])), SchemaIncompatibleError),
    "decimal of another scale": (lambda: changed(amount=pa.array([decimal.Decimal("1.234")] * 2)), SchemaIncompatibleError),
    "float for a decimal": (lambda: changed(amount=pa.array([1.5, 2.5])), SchemaIncompatibleError),
    "two names that differ in case": (lambda: changed(N=pa.array([1, 2])), SchemaIncompatibleError),
    "meta column": (lambda: changed(_hoodie_commit_time=pa.array(["1", "2"])), ReservedColumnError),
    "meta column in capitals": (lambda: changed(_HOODIE_RECORD_KEY=pa.array(["1", "2"])), ReservedColumnError),
    "operation column": (lambda: changed(_hoodie_operation=pa.array(["I", "U"])), ReservedColumnError),
    "deletion mark of another type": (lambda: changed(_hoodie_is_deleted=pa.array([1, 0])), ReservedColumnError),
    "interval": (lambda: changed(n=pa.array([None, None], pa.month_day_nano_interval())), UnsupportedTypeError),
    "list of void": (lambda: changed(n=pa.array([[], None], pa.list_(pa.null()))), UnsupportedTypeError),
    "map with numbers as keys": (lambda: changed(n=pa.array([[(1, 2)], None], pa.map_(pa.int32(), pa.int32()))), UnsupportedTypeError),
    "timestamp without zone": (lambda: changed(n=pa.array([1, 2], pa.timestamp("us"))), UnsupportedTypeError),
    "time of day": (lambda: changed(n=pa.array([1, 2], pa.time64("us"))), UnsupportedTypeError),
    "wide decimal": (lambda: changed(n=pa.array([1, 2], pa.decimal256(60, 0))), UnsupportedTypeError),
    "struct without fields": (lambda: changed(n=pa.array([{}, {}], pa.struct([]))), UnsupportedTypeError),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", BAD)
def test_bad_batch_is_refused_without_a_trace(table: HoodieTable, tmp_path: Path, name: str, write: str) -> None:
    batch, error = BAD[name]
    refused(tmp_path, error, lambda: getattr(table, write)(batch()))
    table.upsert(good("next"))
    assert set(rows_of(table)) == {"kept", "next"}


def test_bad_key_error_counts_rows_and_names_some(table: HoodieTable, tmp_path: Path) -> None:
    error = refused(tmp_path, RecordKeyError, lambda: table.upsert(changed(id=pa.array(["x", None]))))
    assert "1 of 2 rows" in str(error)
    assert "row numbers 1" in str(error)


def test_reordered_columns_and_names_in_another_case_are_the_tables(table: HoodieTable) -> None:
    table.upsert(good("x").select(["amount", "n", "id"]).rename_columns(["AMOUNT", "N", "Id"]))
    assert table.schema.names == SCHEMA.names
    assert rows_of(table)["x"]["n"] == 0


def test_narrower_values_are_widened_to_the_table(table: HoodieTable) -> None:
    table.upsert(changed(n=pa.array([1, 2], pa.int8()), amount=pa.array([decimal.Decimal("1.5")] * 2, pa.decimal128(5, 1))))
    assert rows_of(table)["y"] == {"id": "y", "n": 2, "amount": decimal.Decimal("1.50")}


@pytest.mark.parametrize(
    ("rows", "accepted"),
    [
        ([(None, None)], False),
        ([("", "")], False),
        ([(None, "")], False),
        ([(None, "b")], True),
        ([("", "b"), (None, "b")], True),
        ([("__null__", "b")], False),
        ([("__empty__", "b")], False),
        ([("1,b:2", "3")], False),
        ([("1", "2,b:3")], False),
        ([("1,2", "3"), ("1", "2,3"), ("a:1", "b:2")], True),
    ],
)
def test_composite_keys_are_told_apart_or_refused(tmp_path: Path, rows: list[tuple[str | None, str | None]], accepted: bool) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("v", pa.int64())])
    table = make_table(tmp_path / "t", schema, key=("a", "b"))
    table.insert(pa.table({"a": ["kept"], "b": ["kept"], "v": [0]}, schema=schema))
    batch = pa.table([[row[0] for row in rows], [row[1] for row in rows], range(len(rows))], schema=schema)
    if not accepted:
        refused(tmp_path, RecordKeyError, lambda: table.upsert(batch))
        batch = batch.slice(0, 0)
    table.upsert(batch)
    table.upsert(batch)
    stored = [(row["a"], row["b"]) for row in table.to_arrow().to_pylist()]
    assert sorted(stored, key=repr) == sorted([("kept", "kept"), *(rows if accepted else [])], key=repr)


@pytest.mark.parametrize("value", [math.nan, -0.0, 1e300])
def test_float_keys_without_one_text_are_refused(tmp_path: Path, value: float) -> None:
    schema = pa.schema([("id", pa.float64())])
    table = make_table(tmp_path / "t", schema)
    table.insert(pa.table({"id": [1.5]}, schema=schema))
    refused(tmp_path, RecordKeyError, lambda: table.upsert(pa.table({"id": [2.5, value]}, schema=schema)))
    table.upsert(pa.table({"id": [2.5]}, schema=schema))
    assert set(rows_of(table)) == {1.5, 2.5}


@pytest.mark.parametrize(("orders", "winner"), [([1, 3, 2], 1), ([2, 2, 2], 2), ([None, 1, None], 1), ([None, None, None], 2)])
def test_of_equal_keys_in_a_batch_the_greatest_ordering_value_wins_then_the_last(
    tmp_path: Path, orders: list[int | None], winner: int
) -> None:
    schema = pa.schema([("id", pa.string()), ("o", pa.int64()), ("row", pa.int64())])
    table = make_table(tmp_path / "t", schema, ordering=("o",))
    batch = pa.table({"id": ["k"] * 3, "o": orders, "row": range(3)}, schema=schema)
    result = table.upsert(batch)
    assert result.duplicates_dropped == 2
    assert rows_of(table)["k"]["row"] == winner
    refused(tmp_path, DuplicateKeyError, lambda: table.upsert(batch, options={"lakehouse.duplicate.source.keys": "ERROR"}))


def test_bytes_that_are_no_utf8_are_refused(table: HoodieTable, tmp_path: Path) -> None:
    torn = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"], pa.binary()).buffers())
    refused(tmp_path, LakehouseError, lambda: table.upsert(changed(id=torn)))
    refused(tmp_path, LakehouseError, lambda: table.bulk_insert(changed(id=torn)))
    table.upsert(good("next"))
    assert set(rows_of(table)) == {"kept", "next"}


def test_bytes_that_are_no_utf8_are_refused_in_a_value(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.string()), ("raw", pa.binary())])
    table = make_table(tmp_path / "t", schema)
    table.insert(pa.table({"id": ["kept"], "v": ["v"], "raw": [b"\xff"]}, schema=schema))
    torn = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
    batch = pa.table([pa.array(["x"]), torn, pa.array([b""])], schema=schema)
    for write in (table.upsert, table.bulk_insert):
        refused(tmp_path, LakehouseError, lambda write=write: write(batch))
    assert rows_of(table) == {"kept": {"id": "kept", "v": "v", "raw": b"\xff"}}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"options": {"hoodie.parquet.max.file.siz": 1}}, UnknownOptionError),
        ({"options": {"hoodie.parquet.max.file.size": "many"}}, OptionError),
        ({"merge_update_columns": ["nowhere"]}, OptionError),
        ({"merge_update_columns": ["id"]}, OptionError),
        ({"delete_keys": pa.table({"other": ["x"]})}, MissingOptionError),
    ],
)
def test_bad_arguments_are_refused_without_a_trace(
    table: HoodieTable, tmp_path: Path, arguments: dict[str, Any], error: type[LakehouseError]
) -> None:
    refused(tmp_path, error, lambda: table.upsert(good("x"), **arguments))


def test_rows_of_no_known_kind_are_refused(table: HoodieTable, tmp_path: Path) -> None:
    refused(tmp_path, OptionError, lambda: table.upsert([{"id": "x"}]))


def test_delete_without_the_key_column_is_refused(table: HoodieTable, tmp_path: Path) -> None:
    refused(tmp_path, MissingOptionError, lambda: table.delete(pa.table({"n": [1]})))
    refused(tmp_path, RecordKeyError, lambda: table.delete(pa.table({"id": pa.array([None], pa.string())})))


def test_types_at_their_edges_round_trip(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("wide", pa.decimal128(38, 10)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("f", pa.float64()),
            ("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    edge = decimal.Decimal("9" * 28 + "." + "9" * 10)
    rows = [
        {"id": "1", "wide": edge, "day": dt.date(1, 1, 1), "at": dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc), "f": -0.0, "m": []},
        {"id": "2", "wide": edge.copy_negate(), "day": dt.date(1582, 10, 10), "at": None, "f": math.inf, "m": [("k", None)]},
        {
            "id": "3",
            "wide": None,
            "day": dt.date(9999, 12, 31),
            "at": dt.datetime.max.replace(tzinfo=dt.timezone.utc),
            "f": None,
            "m": None,
        },
    ]
    table = make_table(tmp_path / "t", schema)
    table.upsert(pa.Table.from_pylist(rows, schema=schema))
    table.upsert(pa.Table.from_pylist(rows[:1], schema=schema))
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == rows
    assert math.copysign(1, rows_of(table)["1"]["f"]) == -1


@pytest.mark.parametrize("name", ["with space", "ünïcode", "semi;colon", "quo'te\"", "per%20cent", "a+b#c?d"])
def test_table_path_with_odd_characters_works(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path / name, SCHEMA)
    table.insert(good("x"))
    table.upsert(good("x", "y"))
    assert set(rows_of(HoodieTable.open(str(tmp_path / name)))) == {"x", "y"}
    assert {Path(path).relative_to(tmp_path).parts[0] for path in files_below(tmp_path)} == {name}


def test_write_on_a_path_that_is_no_table_leaves_nothing_behind(table: HoodieTable, tmp_path: Path) -> None:
    for entry in sorted((tmp_path / "t").rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() else entry.unlink()
    refused(tmp_path, LakehouseError, lambda: table.insert(good("x")))
    assert list((tmp_path / "t").iterdir()) == []
    refused(tmp_path, LakehouseError, lambda: HoodieTable(LocalStorage(str(tmp_path / "t"))))


def test_big_values_work(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.string())])
    table = make_table(tmp_path / "t", schema)
    # The Bloom filter goes over a key by four bytes at a time.
    key, value = "k" * 100_000, "v" * 10_000_000
    table.upsert(pa.table({"id": [key, "other"], "v": [value, "small"]}, schema=schema))
    table.upsert(pa.table({"id": [key], "v": [value + "!"]}, schema=schema))
    found = rows_of(table)
    assert sorted(found) == [key, "other"]
    assert found[key]["v"] == value + "!"


def test_two_thousand_columns_work(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), *((f"c{number}", pa.int32()) for number in range(2000))])
    table = make_table(tmp_path / "wide", schema)
    table.upsert(pa.Table.from_pylist([{"id": "x", "c1999": 7}], schema=schema))
    assert rows_of(table)["x"]["c1999"] == 7


def test_five_hundred_partitions_in_a_batch_work(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])
    table = make_table(tmp_path / "t", schema, partition_by=("part",))
    result = table.bulk_insert(pa.table({"id": range(1000), "part": [number % 500 for number in range(1000)]}, schema=schema))
    assert result.files_created == 500
    assert len(rows_of(table)) == 1000


def test_deeply_nested_values_round_trip(tmp_path: Path) -> None:
    kind, value = pa.int32(), 1
    for _ in range(50):
        kind, value = pa.struct([("f", kind)]), {"f": value}  # type: ignore[dict-item]
    schema = pa.schema([("id", pa.string()), ("deep", kind)])
    table = make_table(tmp_path / "t", schema)
    table.upsert(pa.Table.from_pylist([{"id": "x", "deep": value}], schema=schema))
    assert rows_of(table)["x"]["deep"] == value


def test_a_write_without_rows_is_refused_by_name(table: HoodieTable, tmp_path: Path) -> None:
    for write in (table.upsert, table.insert, table.bulk_insert, table.delete, table.insert_overwrite_table):
        refused(tmp_path, OptionError, lambda write=write: write(None), match="not as NoneType")


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, SchemaIncompatibleError, lambda: make_table(tmp_path / "empty", pa.schema([]), key=()), match="needs a column")


@pytest.mark.parametrize("as_of", [-1, 20260101000000000, 1.5, ["-1"], b"-1"])
def test_a_point_in_time_of_another_type_is_refused(table: HoodieTable, as_of: Any) -> None:
    with pytest.raises(OptionError, match="is text, a date or a datetime, not"):
        table.to_arrow(as_of=as_of)


def test_a_history_of_less_than_nothing_is_refused(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="limit is a whole number, 0 or more, not int -1"):
        table.history(-1)


@pytest.mark.parametrize("value", ["many", "1.5", "", "0", "-3", "1_0"])
def test_a_count_that_is_none_says_what_was_expected(table: HoodieTable, tmp_path: Path, value: str) -> None:
    options = {"hoodie.clean.commits.retained": value}
    refused(tmp_path, OptionError, lambda: table.clean(options=options), match="expected a positive whole number$")


@pytest.mark.parametrize(
    ("write", "argument", "said"),
    [
        ("insert", "delete_keys", "'delete_keys'$"),
        ("delete", "delete_keys", "'delete_keys'$"),
        ("upsert", "update_columns", "'update_columns'; did you mean 'merge_update_columns'"),
        ("upsert", "partitions", "'partitions'"),
        ("insert_overwrite", "partitions", "'partitions'; did you mean 'replace_partitions'"),
        ("insert", "replaced_rows", "'replaced_rows'"),
        ("delete_partitions", "delete_keys", "'delete_keys'$"),
    ],
)
def test_an_argument_of_another_write_is_refused(table: HoodieTable, tmp_path: Path, write: str, argument: str, said: str) -> None:
    before = files_below(tmp_path)
    with pytest.raises(TypeError, match=rf"^{write}\(\) got an unexpected keyword argument {said}"):
        getattr(table, write)([] if write == "delete_partitions" else good("x"), **{argument: good("x")})
    with pytest.raises(OptionError, match="expected_instant"):
        getattr(table, write)([] if write == "delete_partitions" else good("x"), expected="20260101000000000")
    with pytest.raises(TypeError, match=r"^replace_rows\(\) got an unexpected keyword argument 'delete_keys'$"):
        table.replace_rows(good("x"), replaced=good("x"), delete_keys=good("x"))
    assert files_below(tmp_path) == before


def test_a_mistyped_argument_of_a_write_is_named_with_the_nearest(table: HoodieTable, tmp_path: Path) -> None:
    before = files_below(tmp_path)
    with pytest.raises(TypeError, match=r"^upsert\(\) got an unexpected keyword argument 'option'; did you mean 'options'\?$"):
        table.upsert(good("x"), option={})
    assert files_below(tmp_path) == before
