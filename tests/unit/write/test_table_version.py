"""Tables of versions 6, 8 and 9: how one is asked for, what it says of itself, and that a write does not change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import OptionError
from lakehouse_engine.format.properties import CHECKSUM_KEY
from tests.support.readers import assert_same_rows, read_with_hudi_rs

ROWS = pa.table({"id": [1, 2], "ts": [1, 1], "v": ["a", "b"]})
KEY = "hoodie.write.table.version"


def made(folder: Path, properties: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **given: Any) -> HoodieTable:
    warehouse = Lakehouse(str(folder), options=options)
    return warehouse.create_table("s.t", schema=ROWS.schema, record_key=["id"], properties=properties or {}, **given)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_is_made_in_the_version_that_is_asked_for(tmp_path: Path, version: int, table_type: str) -> None:
    table = made(tmp_path, {KEY: version}, ordering_fields=["ts"], table_type=table_type)
    table.insert(ROWS)
    table.upsert(pa.table({"id": [1, 3], "ts": [2, 2], "v": ["c", "d"]}))
    table.delete(pa.table({"id": [2]}))
    assert int(table.config.version) == version
    assert table.to_arrow().sort_by("id").column("v").to_pylist() == ["c", "d"]
    assert_same_rows(read_with_hudi_rs(table.path).select(ROWS.column_names), table.to_arrow())
    folder = "timeline" if version > 6 else ""
    completed = [file.name for file in (Path(table.path) / ".hoodie" / folder).iterdir() if file.name.endswith("commit")]
    assert len(completed) == 3
    assert all(("_" in name) == (version > 6) for name in completed)


def test_the_default_is_six_and_a_warehouse_may_have_another(tmp_path: Path) -> None:
    assert int(made(tmp_path / "a").config.version) == 6
    assert int(made(tmp_path / "b", options={KEY: "NINE"}).config.version) == 9
    assert int(made(tmp_path / "c", {"hoodie.table.version": "8"}, options={KEY: "9"}).config.version) == 8


@pytest.mark.parametrize("version", ["7", "10", "nine!", ""])
def test_another_version_is_refused_and_nothing_is_made(tmp_path: Path, version: str) -> None:
    with pytest.raises(OptionError, match="expected 6, 8 or 9"):
        made(tmp_path, {KEY: version})
    assert not (tmp_path / "s").exists()


def test_a_write_does_not_change_the_version(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(OptionError, match="the table has version 6, which a write does not change"):
        table.insert(ROWS, options={KEY: 9})
    table.insert(ROWS, options={KEY: 6})
    assert table.to_arrow().num_rows == 2


@pytest.mark.parametrize("version", [8, 9])
def test_the_properties_say_the_merge_mode_and_nothing_that_is_of_version_six_alone(tmp_path: Path, version: int) -> None:
    stored = dict(made(tmp_path, {KEY: version}, ordering_fields=["ts"], partition_by=["v"]).config.properties)
    assert stored["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert stored["hoodie.table.ordering.fields"] == "ts"
    assert stored["hoodie.timeline.layout.version"] == "2"
    assert stored["hoodie.table.keygenerator.type"] == "SIMPLE"
    assert {KEY, "hoodie.table.precombine.field", "hoodie.table.keygenerator.class"}.isdisjoint(stored)
    assert ("hoodie.compaction.payload.class" in stored) == (version == 8)
    assert stored[CHECKSUM_KEY]


@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "FirstValueAvroPayload", "AWSDmsAvroPayload"])
def test_payload_classes_without_a_merge_mode_are_refused(tmp_path: Path, payload: str) -> None:
    with pytest.raises(OptionError, match=f"not by {payload}"):
        made(tmp_path, {KEY: 9, "hoodie.datasource.write.payload.class": payload}, ordering_fields=["ts"])


def test_several_ordering_fields_are_for_the_later_versions(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="one ordering field"):
        made(tmp_path / "a", ordering_fields=["ts", "v"])
    assert made(tmp_path / "b", {KEY: 9}, ordering_fields=["ts", "v"]).config.ordering_fields == ("ts", "v")
