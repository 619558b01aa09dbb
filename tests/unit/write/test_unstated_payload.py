"""A foreign table that names no payload is merged as the Hudi that made it does; ours say what they mean."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from tests.support.table_builder import TableBuilder

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string())])
LATE = {"id": 1, "ts": 3, "v": "late"}


def build(path: Path, *, foreign: bool) -> TableBuilder:
    """One row of ts 10; without the payload class, as Hudi 0.15 leaves a copy-on-write table."""
    built = TableBuilder.create(path, SCHEMA, ordering="ts")
    built.bulk_insert([{"id": 1, "ts": 10, "v": "stored"}])
    if foreign:
        ConfigStore(LocalStorage(str(path))).update({"hoodie.compaction.payload.class": None})
    return built


def test_late_row_overwrites_in_a_copy_on_write_table_of_hudi_0_15(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=True)
    built.table.upsert(built.arrow([LATE]))
    assert built.table.to_arrow().to_pylist() == [LATE]


def test_batch_is_still_reduced_by_ordering_in_a_table_of_hudi_0_15(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=True)
    built.table.upsert(built.arrow([{"id": 1, "ts": 5, "v": "newer"}, LATE]))
    assert built.table.to_arrow().column("v").to_pylist() == ["newer"]


def test_write_can_name_the_payload_that_the_table_does_not(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=True)
    built.table.upsert(built.arrow([LATE]), options={"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"})
    assert built.table.to_arrow().column("v").to_pylist() == ["stored"]


def test_late_row_loses_in_a_table_of_ours_since_it_stores_its_payload(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=False)
    built.table.upsert(built.arrow([LATE]))
    assert built.table.config.payload_class == "DefaultHoodieRecordPayload"
    assert built.table.to_arrow().column("v").to_pylist() == ["stored"]


def test_rows_are_inserted_into_a_table_whose_ordering_field_is_no_column_and_upserts_refused(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=False)
    ConfigStore(LocalStorage(str(tmp_path / "t"))).update({"hoodie.table.precombine.field": "nowhere"})
    table = HoodieTable.open(str(tmp_path / "t"))
    table.insert(built.arrow([{"id": 2, "ts": 1, "v": "new"}]))
    with pytest.raises(SchemaIncompatibleError, match="'nowhere' is not in the batch"):
        table.upsert(built.arrow([LATE]))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2]


def test_ordering_column_is_not_lost_with_a_new_schema(tmp_path: Path) -> None:
    built = build(tmp_path / "t", foreign=False)
    with pytest.raises(SchemaIncompatibleError, match="'ts' is not in the batch"):
        built.table.insert_overwrite_table(built.arrow([LATE]).drop_columns(["ts"]), replace_schema=True)
