"""Bounds that records of statistics have: never narrower than the values, whatever a footer says."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import STATS
from lakehouse_engine.metadata_table.records.columns import indexed_columns
from lakehouse_engine.metadata_table.records.joining import joined
from lakehouse_engine.metadata_table.records.rows import row_locations
from lakehouse_engine.metadata_table.records.statistics import base_file_statistics, log_statistics, partition_statistics
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("flag", pa.bool_()),
        ("octets", pa.binary()),
        ("text", pa.string()),
        ("list", pa.list_(pa.int64())),
        ("big", pa.decimal128(38, 10)),
    ]
)
VERSIONS = pytest.mark.parametrize("version", ["6", "9"])


def made(folder: Path, version: str = "9", table_type: str = "cow") -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], table_type=table_type, version=TableVersion(int(version)))
    create_table(LocalStorage(str(folder / "t")), spec)
    return HoodieTable.open(str(folder / "t"))


def rows(*ids: int, **columns: list[Any]) -> pa.Table:
    count = len(ids)
    whole = {"id": list(ids), **{name: columns.get(name, [None] * count) for name in SCHEMA.names[1:]}}
    return pa.table(whole, schema=SCHEMA)


def bases(state: TableState) -> list[Any]:
    return [piece.base_file for piece in state.view.latest_slices() if piece.base_file is not None]


def logs(state: TableState) -> list[Any]:
    return [log for piece in state.view.latest_slices() for log in piece.log_files]


def stats(records: Records, column: str) -> list[dict[str, Any]]:
    found = records.payloads.column(STATS).to_pylist()
    return [one for one in found if one["columnName"] == column]


def bound(one: dict[str, Any], end: str) -> Any:
    value = one[f"{end}Value"]
    return None if value is None else next(member["value"] for member in value.values() if member is not None)


@pytest.mark.parametrize(("values", "ends"), [([1.0, math.nan], [1.0, math.inf]), ([math.nan, math.nan], [-math.inf, math.inf])])
def test_nan_is_within_infinite_bounds(values: list[float], ends: list[float], tmp_path: Path) -> None:
    """Bounds by the footer leave NaN out, and Hudi's filters do not find a bound of NaN."""
    table = made(tmp_path)
    table.insert(rows(1, 2, x=values))
    found = base_file_statistics(table.state, bases(table.state))
    assert [bound(one, end) for one in stats(found, "x") for end in ("min", "max")] == ends
    whole = partition_statistics(table.state, table.state.view.latest_slices(), joined([]))
    assert [bound(one, end) for one in stats(whole, "x") for end in ("min", "max")] == ends


def test_zeros_have_the_sign_that_java_orders_outside(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert(rows(1, 2, x=[0.0, -0.0]))
    (one,) = stats(base_file_statistics(table.state, bases(table.state)), "x")
    assert [math.copysign(1, bound(one, end)) for end in ("min", "max")] == [-1.0, 1.0]


def test_text_that_a_footer_has_no_bounds_of_has_those_of_its_rows(tmp_path: Path) -> None:
    table = made(tmp_path)
    long = "b" * 5000
    table.insert(rows(1, 2, text=[long, "c"]))
    (base,) = bases(table.state)
    footer = FOOTERS.read(table.state.storage, base)
    position = next(number for number in range(footer.num_columns) if footer.schema.column(number).path == "text")
    assert not footer.row_group(0).column(position).statistics.has_min_max
    (one,) = stats(base_file_statistics(table.state, [base]), "text")
    assert (bound(one, "min"), bound(one, "max"), one["totalSize"] > 0) == (long, "c", True)


@VERSIONS
def test_every_indexed_column_has_a_record_and_others_have_none(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    table.insert(rows(1, 2, flag=[True, False], octets=[b"\xff", b"a"], big=[Decimal("1.5"), None]))
    found = base_file_statistics(table.state, bases(table.state))
    names = [one["columnName"] for one in found.payloads.column(STATS).to_pylist()]
    assert tuple(names) == indexed_columns(table.state)
    assert "list" not in names
    assert [bound(one, end) for name in ("flag", "octets") for one in stats(found, name) for end in ("min", "max")] == [
        False,
        True,
        b"a",
        b"\xff",
    ]
    (big,) = stats(found, "big")
    assert (big["valueCount"], big["nullCount"], big["minValue"] == big["maxValue"]) == (2, 1, True)


def test_a_file_with_a_decimal_that_version_1_cannot_hold_has_no_records(tmp_path: Path) -> None:
    table = made(tmp_path, "6")
    table.insert(rows(1, big=[Decimal(10) ** 20]))
    assert len(base_file_statistics(table.state, bases(table.state)).keys) == 0
    assert len(base_file_statistics(table.state, bases(table.state), ["id"]).keys) == 1


@VERSIONS
def test_a_column_that_was_added_is_null_in_files_without_it(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    table.insert(rows(1, 2))
    table = HoodieTable.open(table.path, options={"hoodie.datasource.write.reconcile.schema": "true", "hoodie.parquet.small.file.limit": 0})
    table.insert(rows(3).append_column("more", pa.array([7])))
    found = stats(base_file_statistics(table.state, bases(table.state)), "more")
    assert sorted((one["valueCount"], one["nullCount"], bound(one, "min")) for one in found) == [(1, 0, 7), (2, 2, None)]


@VERSIONS
def test_logs_have_ranges_of_their_rows_and_none_with_deletions_only(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version, "mor")
    table.insert(rows(1, 2, 3, x=[1.0, 2.0, 3.0]))
    table.upsert(rows(1, 2, x=[10.0, 12.0]))
    table.delete(pa.table({"id": [3]}))
    state = table.state
    found = stats(log_statistics(state, logs(state)), "x")
    filled = [one for one in found if one["valueCount"]]
    assert [(bound(one, "min"), bound(one, "max"), one["valueCount"]) for one in filled] == [(10.0, 12.0, 2)]
    (empty,) = (one for one in found if not one["valueCount"])
    assert (empty["minValue"], empty["maxValue"], empty["nullCount"]) == (None, None, 0)
    assert empty["valueType"] == (None if version == "6" else {"typeOrdinal": 1, "additionalInfo": None})
    whole = partition_statistics(state, state.view.latest_slices(), joined([]))
    (one,) = stats(whole, "x")
    assert (bound(one, "min"), bound(one, "max"), one["valueCount"], one["isTightBound"]) == (1.0, 12.0, 5, True)
    table.upsert(rows(1, x=[math.nan]))
    (one,) = stats(partition_statistics(table.state, table.state.view.latest_slices(), joined([])), "x")
    assert (bound(one, "min"), bound(one, "max"), one["valueCount"]) == (-math.inf, math.inf, 6)


def test_bounds_that_a_record_lacks_are_derived_for_a_partition(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert(rows(1, x=[5.0]))
    known = base_file_statistics(table.state, bases(table.state))
    struct = known.payloads.column(STATS).combine_chunks()
    children = [pa.nulls(len(struct), field.type) if field.name == "minValue" else struct.field(field.name) for field in struct.type]
    unbounded = pa.StructArray.from_arrays(children, fields=list(struct.type))
    place = known.payloads.column_names.index(STATS)
    without = Records(known.keys, known.payloads.set_column(place, known.payloads.schema.field(STATS), unbounded))
    slices = table.state.view.latest_slices()
    found, expected = (partition_statistics(table.state, slices, one) for one in (without, known))
    assert found.payloads.equals(expected.payloads)
    assert len(found.keys) == len(indexed_columns(table.state))


def test_days_that_spark_reads_as_others_have_wider_bounds(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", schema, ["id"], version=TableVersion.NINE))
    table = HoodieTable.open(str(tmp_path / "t"))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    day, moment = dt.date(1500, 6, 1), dt.datetime(1500, 6, 1, tzinfo=dt.timezone.utc)
    table.insert(pa.table({"id": [1], "day": [day], "at": [moment]}, schema=schema))
    (base,) = bases(table.state)
    path = Path(table.path, base.path)
    stored = pq.read_table(path)
    pq.write_table(stored.replace_schema_metadata({b"org.apache.spark.legacyDateTime": b""}), path)
    found = base_file_statistics(TableState.load(LocalStorage(table.path)), [replace(base, size=path.stat().st_size)])
    apart = dt.timedelta(days=31)
    days, moments = (stats(found, name)[0]["minValue"] for name in ("day", "at"))
    assert days["IntWrapper"]["value"] == (day - apart - dt.date(1970, 1, 1)).days
    assert moments["LongWrapper"]["value"] == (moment - apart - epoch) // dt.timedelta(microseconds=1)
    assert bound(stats(found, "day")[0], "max") == (day + apart - dt.date(1970, 1, 1)).days


@VERSIONS
def test_rows_are_those_that_the_logs_leave(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version, "mor")
    table.insert(rows(1, 2, 3))
    table.delete(pa.table({"id": [2]}))
    table.upsert(rows(1, 4))
    found = pa.concat_tables(list(row_locations(table.state, table.state.view.latest_slices())))
    assert sorted(found["key"].to_pylist()) == ["1", "3", "4"]
    assert set(found["file_id"].to_pylist()) == {piece.file_id for piece in table.state.view.latest_slices()}


def test_a_table_without_meta_columns_has_no_rows_to_index(tmp_path: Path) -> None:
    table = made(tmp_path)
    ConfigStore(table.state.storage).update({"hoodie.populate.meta.fields": "false"})
    state = TableState.load(table.state.storage)
    with pytest.raises(UnsupportedTableError, match="meta columns"):
        list(row_locations(state, []))
