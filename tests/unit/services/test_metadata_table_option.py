"""Tables whose options ask for a metadata table get it behind a write, keep it, and are written by its record index."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import DuplicateKeyError, LakehouseError
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.services.metadata import building
from lakehouse_engine.verify.metadata_table import check_metadata_table

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
BY_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
ENABLE, STATS = "hoodie.metadata.enable", "hoodie.metadata.index.column.stats.enable"
VERSION = "hoodie.table.version"


def rows(ids: str, p: str, v: int) -> pa.Table:
    names = ids.split()
    return pa.table({"id": names, "p": [p] * len(names), "v": [v] * len(names)}, schema=SCHEMA)


def made(folder: Path, *, table_type: str = "cow", **properties: Any) -> HoodieTable:
    return Lakehouse(str(folder)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=table_type, properties=properties
    )


def partitions(table: HoodieTable) -> tuple[str, ...]:
    return HoodieTable.open(table.path).config.metadata_partitions


def stored(table: HoodieTable) -> dict[str, tuple[str, int]]:
    found = HoodieTable.open(table.path).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is stored twice"
    return {row["id"]: (row["p"], row["v"]) for row in found}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_table_is_written_by_its_record_index(
    version: str, table_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(tmp_path, table_type=table_type, **BY_INDEX, **{VERSION: version})
    with caplog.at_level(logging.WARNING):
        table.upsert(rows("a b c", "x", 1))
        assert partitions(table) == ("files", "record_index")

        def refused(*given: object) -> None:
            raise AssertionError("all files were asked")

        monkeypatch.setattr(KeyColumnIndex, "tag", refused)
        table.upsert(rows("b c d", "x", 2))
        table.upsert(rows("c e", "y", 3))
        table.delete(rows("a d", "", 0).select(["id"]))
        table.upsert(rows("a", "x", 4))
        table.upsert(rows("d", "y", 4))
        table.upsert(rows("a b c d e f", "y", 5))
    assert stored(table) == dict.fromkeys("abcdef", ("y", 5))
    report = check_metadata_table(HoodieTable.open(table.path).state)
    assert (report.findings, report.keys) == ((), 6)
    assert caplog.records == []


def test_a_batch_that_is_planned_in_shares_has_the_same_rows(tmp_path: Path) -> None:
    table = made(tmp_path, **BY_INDEX)
    table.upsert(rows("a b c", "x", 1))
    table.upsert(rows("b c d", "y", 2), options={"lakehouse.write.broadcast.max.bytes": "0"})
    assert stored(table) == {"a": ("x", 1), **dict.fromkeys("bcd", ("y", 2))}
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


def test_inserts_leave_stored_keys_out_or_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path, **BY_INDEX)
    table.upsert(rows("a b", "x", 1))
    for again in (rows("b c", "y", 2), rows("c c", "y", 2)):
        with pytest.raises(DuplicateKeyError):
            table.insert(again)
    table.insert(rows("a c b", "y", 3), options={"hoodie.datasource.insert.dup.policy": "DROP"})
    assert stored(table) == {"a": ("x", 1), "b": ("x", 1), "c": ("y", 3)}
    with pytest.raises(DuplicateKeyError, match="stored in the partition 'p=x'"):
        table.insert_overwrite(rows("a", "y", 4))
    table.insert_overwrite(rows("c d", "y", 4))
    assert stored(table) == {"a": ("x", 1), "b": ("x", 1), **dict.fromkeys("cd", ("y", 4))}
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


def test_it_is_built_when_there_are_files_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, **{ENABLE: "true", STATS: "true"})
    built: list[tuple[str, ...]] = []
    build = building.build

    def noted(storage: Any, wanted: Any, **more: Any) -> Any:
        built.append(tuple(wanted))
        return build(storage, wanted, **more)

    monkeypatch.setattr(building, "build", noted)
    table.upsert(rows("", "x", 1))
    assert (partitions(table), built) == ((), [])
    for number in range(3):
        table.upsert(rows("a b", "x", number))
    assert (partitions(table), built) == (("column_stats", "files"), [("files", "column_stats")])
    table.upsert(rows("c", "x", 7), options=BY_INDEX)
    assert (partitions(table), built[1:]) == (("column_stats", "files", "record_index"), [("record_index",)])
    assert table.to_arrow(filters=pc.field("id") == "c").num_rows == 1


def test_false_drops_one_that_is_there(tmp_path: Path) -> None:
    table = made(tmp_path, **{ENABLE: "true"})
    table.upsert(rows("a", "x", 1))
    assert partitions(table) == ("files",)
    table.upsert(rows("a", "x", 2), options={ENABLE: "false"})
    assert partitions(table) == ()
    assert not (Path(table.path) / ".hoodie" / "metadata").exists()
    table.upsert(rows("a", "x", 3), options={ENABLE: "auto"})
    assert (partitions(table), stored(table)) == ((), {"a": ("x", 3)})
    table.upsert(rows("a", "x", 4))
    assert partitions(table) == ("files",)


def test_a_build_that_fails_does_not_fail_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, **BY_INDEX)

    def failing(*given: object, **more: object) -> None:
        raise LakehouseError("no room")

    monkeypatch.setattr(building, "build", failing)
    result = table.upsert(rows("a", "x", 1))
    assert result.failed_services == ("the building of the metadata table after the commit failed: no room",)
    assert stored(table) == {"a": ("x", 1)}
    monkeypatch.undo()
    assert table.upsert(rows("a", "x", 2)).failed_services == ()
    assert partitions(table) == ("files", "record_index")


INDEXED = {ENABLE: "true", "hoodie.metadata.global.record.level.index.enable": "true"}
OF_PARTITIONS = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


def places(ids: str, p: str) -> pa.Table:
    return rows(ids, p, 0).select(["id", "p"])


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_an_upsert_brings_no_stored_key_into_another_partition_by_an_index_that_is_not_global(
    index: str, table_type: str, version: str, tmp_path: Path
) -> None:
    table = made(tmp_path, table_type=table_type, **OF_PARTITIONS[index], **INDEXED, **{VERSION: version})
    table.upsert(rows("a b c", "x", 1))
    assert partitions(table) == ("files", "record_index")
    table.upsert(rows("d e f", "y", 1))
    for write in (table.upsert, table.insert):
        with pytest.raises(DuplicateKeyError, match="stored in the partition 'p=x'"):
            write(rows("g b", "y", 2))
    with pytest.raises(DuplicateKeyError, match="brings twice"):
        table.upsert(pa.concat_tables([rows("g", "x", 2), rows("g", "y", 2)]))
    table.upsert(rows("a b h", "x", 3))
    table.upsert(rows("i", "y", 3), delete_keys=places("c", "x"))
    table.upsert(rows("c d", "y", 4))
    table.upsert(rows("b", "y", 5), delete_keys=places("b", "x"))
    expected = {**dict.fromkeys("ah", ("x", 3)), "i": ("y", 3), **dict.fromkeys("cd", ("y", 4)), **dict.fromkeys("ef", ("y", 1))}
    assert stored(table) == {**expected, "b": ("y", 5)}
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()
    table.delete(places("b", "y"))
    table.upsert(rows("b", "x", 6))
    with pytest.raises(DuplicateKeyError, match="stored in the partition 'p=x'"):
        table.upsert(rows("b", "y", 7))
    assert stored(table) == {**expected, "b": ("x", 6)}
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_with_soft_deletes_a_deleted_row_keeps_its_place_beside_that_of_its_key(index: str, tmp_path: Path) -> None:
    properties = {**OF_PARTITIONS[index], **INDEXED, "lakehouse.deletes": "soft"}
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=schema, record_key=["id"], partition_by=["p"], ordering_fields=["v"], properties=properties
    )
    table.upsert(rows("a b", "x", 1).append_column(schema.field(3), [[False, False]]))
    moved = pa.concat_tables([rows("b", "x", 2), rows("b", "y", 2)]).append_column(schema.field(3), [[True, False]])
    table.upsert(moved)
    assert stored(table) == {"a": ("x", 1), "b": ("y", 2)}
