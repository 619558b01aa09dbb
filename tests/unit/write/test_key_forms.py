"""Timestamps in record keys, which Hudi writes as numbers or as text: stored rows say which, whatever the properties say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import RecordKeyError, UnsupportedTableError
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.options import LOGICAL_TIMESTAMP
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import OPTIONS, make_table, refused

UTC = dt.timezone.utc
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("s", pa.string()), ("v", pa.int64())])
TEXT = {LOGICAL_TIMESTAMP: "true"}
MOMENTS = [dt.datetime(2026, 5, 1, 12, 0, 0, 120000 + n, tzinfo=UTC) for n in (0, 1000, 2000)]


def rows(*numbers: int, v: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"at": MOMENTS[n], "s": f"s{n}", "v": v} for n in numbers], schema=SCHEMA)


def keys(table: HoodieTable) -> list[str]:
    return sorted(table.to_arrow([RECORD_KEY]).column(0).cast(pa.string()).to_pylist())


def turned(path: Path) -> HoodieTable:
    """The table without the property that says how its keys were made."""
    file = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith(("#", LOGICAL_TIMESTAMP))]
    file.write_text("".join(f"{line}\n" for line in kept))
    return HoodieTable.open(str(path), options=OPTIONS)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("key", [("at",), ("at", "s")])
def test_text_in_stored_keys_is_met_by_upserts_and_deletes(key: tuple[str, ...], table_type: str, tmp_path: Path) -> None:
    make_table(tmp_path / "t", SCHEMA, key=key, table_type=table_type, properties=TEXT).insert(rows(0, 1))
    table = turned(tmp_path / "t")
    texts = ["2026-05-01 12:00:00.12", "2026-05-01 12:00:00.121", "2026-05-01 12:00:00.122"]
    expected = texts if len(key) == 1 else [f"at:{text},s:s{number}" for number, text in enumerate(texts)]
    assert keys(table) == expected[:2]
    table.upsert(rows(1, 2, v=2))
    assert keys(table) == expected
    table.delete(rows(0, v=2).select(list(key)))
    assert keys(table) == expected[1:]
    assert table.to_arrow().column("v").to_pylist() == [2, 2]


def test_numbers_in_stored_keys_count_over_an_option_that_asks_for_text(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA, key=["at"])
    table.insert(rows(0))
    table.upsert(rows(0, 1, v=2), options=TEXT)
    assert keys(table) == ["1777636800120000", "1777636800121000"]


def test_option_counts_for_the_first_rows_of_a_table(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA, key=["at"])
    table.upsert(rows(0), options=TEXT)
    table.upsert(rows(0, 1, v=2))
    assert keys(table) == ["2026-05-01 12:00:00.12", "2026-05-01 12:00:00.121"]


def test_both_forms_in_one_table_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path / "t", SCHEMA, key=["at"], properties=TEXT)
    table.insert(rows(0))
    with monkeypatch.context() as patched:
        patched.setattr("lakehouse_engine.write.batch.key_form.sample_rows", lambda *given, **more: [])
        turned(tmp_path / "t").insert(rows(1))
    refused(tmp_path, UnsupportedTableError, lambda: table.upsert(rows(0)), "in two forms")
    assert table.to_arrow().num_rows == 2


def test_text_of_another_zone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zone is that of the JVM that wrote it; what it does in summer is not known."""
    table = make_table(tmp_path / "t", SCHEMA, key=["at"], properties=TEXT)
    with monkeypatch.context() as patched:
        tokyo = lambda values: pa.array(["2026-05-01 21:00:00.12"] * len(values))  # noqa: E731
        patched.setattr("lakehouse_engine.record.keys.record_key.timestamp_text", tokyo)
        table.insert(rows(0))
    refused(tmp_path, UnsupportedTableError, lambda: table.upsert(rows(0)), r"the record key '2026-05-01 21:00:00\.12'")


def test_moment_before_the_gregorian_calendar_cannot_be_a_key_of_text(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA, key=["at"], properties=TEXT)
    old = pa.Table.from_pylist([{"at": dt.datetime(1500, 1, 1, tzinfo=UTC), "s": "s", "v": 1}], schema=SCHEMA)
    refused(tmp_path, RecordKeyError, lambda: table.upsert(old), "before 1582-10-15")
