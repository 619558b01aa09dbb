"""A record key inside a struct: found by upserts, deletions and merges, in either form that a timestamp has."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import MissingOptionError
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.options import LOGICAL_TIMESTAMP
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import OPTIONS, make_table

UTC = dt.timezone.utc
WHO = pa.struct([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
SCHEMA = pa.schema([("who", WHO), ("v", pa.int64()), ("part", pa.string())])
TYPES = ("cow", "mor")
FIELDS = "hoodie.table.recordkey.fields"


def stored(path: Path, **properties: str | None) -> HoodieTable:
    """The table with these properties, and without those that are None, as Hudi may have stored them."""
    file = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith(("#", *properties))]
    file.write_text("".join(f"{line}\n" for line in [*kept, *(f"{key}={value}" for key, value in properties.items() if value is not None)]))
    return HoodieTable.open(str(path), options=OPTIONS)


def keyed(path: Path, field: str, table_type: str, **properties: str) -> HoodieTable:
    """An empty table whose key is a field of a struct, which only Hudi makes."""
    make_table(path, SCHEMA, key=("v",), partition_by=("part",), table_type=table_type)
    return stored(path, **{FIELDS: field, **properties})


def rows(*numbers: int, v: int = 1) -> pa.Table:
    moments = [dt.datetime(2026, 5, 1, 12, 0, 0, 120000 + 1000 * number, tzinfo=UTC) for number in numbers]
    made = [{"who": {"id": f"w{n}", "at": at}, "v": v, "part": "ab"[n % 2]} for n, at in zip(numbers, moments, strict=True)]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def keys(table: HoodieTable) -> list[str]:
    return sorted(table.to_arrow([RECORD_KEY]).column(0).cast(pa.string()).to_pylist())


def values(table: HoodieTable) -> dict[str, int]:
    return {row["who"]["id"]: row["v"] for row in table.to_arrow().to_pylist()}


@pytest.mark.parametrize("table_type", TYPES)
def test_rows_are_updated_and_deleted_by_a_key_inside_a_struct(table_type: str, tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "who.id", table_type)
    table.insert(rows(0, 1, 2))
    table.upsert(rows(1, 3, v=2))
    table.delete(rows(0, 1, 9))
    assert keys(table) == ["w2", "w3"]
    assert values(table) == {"w2": 1, "w3": 2}


def test_a_deletion_without_the_struct_of_the_key_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "who.id", "cow")
    table.insert(rows(0))
    with pytest.raises(MissingOptionError, match="'who'"):
        table.delete(rows(0).select(["v", "part"]))


@pytest.mark.parametrize("table_type", TYPES)
def test_without_meta_columns_the_key_is_made_of_the_struct(table_type: str, tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "who.id", table_type, **{"hoodie.populate.meta.fields": "false"})
    table.insert(rows(0, 1, 2))
    table.upsert(rows(1, 3, v=2))
    table.delete(rows(0))
    assert values(table) == {"w1": 2, "w2": 1, "w3": 2}


@pytest.mark.parametrize("table_type", TYPES)
def test_a_timestamp_in_a_struct_is_met_in_the_form_that_is_stored(table_type: str, tmp_path: Path) -> None:
    keyed(tmp_path / "t", "who.at", table_type, **{LOGICAL_TIMESTAMP: "true"}).insert(rows(0, 1))
    table = stored(tmp_path / "t", **{LOGICAL_TIMESTAMP: None})
    table.upsert(rows(1, 2, v=2))
    assert keys(table) == [f"2026-05-01 12:00:00.12{end}" for end in ("", "1", "2")]
    assert values(table) == {"w0": 1, "w1": 2, "w2": 2}
