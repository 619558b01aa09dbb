"""Blocks of logs that are left as files: the rows of theirs that count are those that are decoded else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.files.block_files import rows_of_blocks
from lakehouse_engine.files.log_scanner import LoggedSlice, LogPromise, ScannedBlock, ScannedLogs
from lakehouse_engine.files.slice_reader import SliceChanges
from lakehouse_engine.format.log.blocks import BlockType, LogBlock
from lakehouse_engine.format.log.data_block import render_parquet_block
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import META_COLUMNS, FileGroupId
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.plan import mor_upsert
from tests.support.routes import route
from tests.unit.read import test_base_positions as tables

__all__ = ["route"]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("v", pa.string()),
        ("day", pa.string()),
        ("tags", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.decimal128(9, 2))]))),
    ]
)
PAYLOAD = "hoodie.datasource.write.payload.class"
COLUMNS = ["_hoodie_record_key", "_hoodie_commit_seqno", *SCHEMA.names]


def rows(ids: Sequence[int], ts: int, text: str = "") -> pa.Table:
    tags = [[{"a": one, "b": None}] if one % 3 else None for one in ids]
    return pa.table([list(ids), [ts] * len(ids), [f"{text}{one}" for one in ids], [f"d{one % 2}" for one in ids], tags], schema=SCHEMA)


def made(folder: Path, **given: Any) -> HoodieTable:
    return tables.made(folder, first=rows(range(100), 5), **given)


def that_count(changes: SliceChanges, columns: Sequence[str]) -> pa.Table:
    """The rows of the blocks, read by somebody who knows nothing but Parquet."""
    parts = [pq.read_table(pa.BufferReader(block.content)) for block in changes.blocks]
    kept = [part.take(np.delete(np.arange(part.num_rows), block.gone)) for part, block in zip(parts, changes.blocks, strict=True)]
    assert [part.num_rows for part in parts] == [block.rows for block in changes.blocks]
    assert all(part.num_rows for part in kept)
    return pa.concat_tables(part.select(list(columns)) for part in kept)


def left(table: HoodieTable, blocks_from: int = 0, columns: Sequence[str] = COLUMNS, **query: Any) -> list[bool]:
    """Of each slice with logs whether its blocks are left as files; what comes of it is what is decoded."""
    plan = plan_incremental(table.state, **query) if "begin" in query else plan_snapshot(table.state, **query)
    assert plan.reader is not None
    found = []
    for piece in plan.logged:
        here, there = plan.reader.changes(piece, columns, blocks_from=blocks_from), plan.reader.changes(piece, columns)
        assert here.removed.tolist() == there.removed.tolist()
        assert here.base_rows == there.base_rows
        assert not there.blocks
        found.append(bool(here.blocks))
        if here.blocks:
            assert here.added.num_rows == 0
            added = that_count(here, columns).sort_by("id")
            assert added.equals(there.added.sort_by("id").cast(added.schema))
        else:
            assert here.added.equals(there.added)
    return found


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@pytest.mark.parametrize("ordering", [True, False])
@pytest.mark.parametrize("day", [True, False])
def test_upserts(tmp_path: Path, index: str, ordering: bool, day: bool) -> None:
    buckets = {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    table = made(tmp_path, ordering=ordering, day=day, properties={"hoodie.index.type": index, **buckets})
    table.upsert(rows([3, 98, 7, 40, 500], 6, "a"))
    table.upsert(rows([7, 2, 40, 99, 3, 500, 501], 4, "late"))
    table.upsert(rows([41, 40, 501], 7, "b"))
    found = left(table)
    assert found
    assert all(found)


def test_of_any_moment_and_any_range(tmp_path: Path) -> None:
    table = made(tmp_path)
    instants = [str(table.upsert(rows(range(at, 60, 7), 6 + at, f"{at}-")).instant) for at in range(4)]
    assert all(left(table, as_of=instant) == [True] for instant in instants)
    assert left(table, begin=instants[1]) == [True]
    assert left(table, begin="000", end=instants[2]) == [True]


def test_keys_that_are_deleted_and_come_back(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([1, 2], 6, "a"))
    table.delete(pa.table({"id": [1, 3]}))
    assert left(table) == [True]
    table.upsert(rows([1, 4], 9, "back"))
    assert left(table) == [True]
    table.delete(pa.table({"id": [1, 2, 4]}))
    assert left(table) == [False], "no row of a block counts"


def test_rows_that_say_that_they_are_deletions(tmp_path: Path) -> None:
    spec = TableSpec("t", SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_())), ["id"], ordering_fields=["ts"], table_type="mor")
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    table = HoodieTable.open(str(tmp_path / "t"))
    for ids, gone in ((range(9), False), ([1, 2], True), ([2, 3], False)):
        table.upsert(rows(ids, 6).append_column("_hoodie_is_deleted", pa.array([gone] * len(ids))))
    assert left(table) == [True]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 2, 3, 4, 5, 6, 7, 8]


def test_a_merged_log(tmp_path: Path) -> None:
    table = made(tmp_path)
    for at in range(3):
        table.upsert(rows([at, 10, 20 + at], 6 + at, f"{at}-"))
    table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2})
    assert left(table) == [True]


def test_a_row_that_takes_the_place_of_two_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions, and Hudi, log a row for a key that is stored twice."""
    monkeypatch.setattr(mor_upsert, "repeated", lambda rows: np.zeros(len(rows), dtype=bool))
    table = made(tmp_path)
    table.insert_overwrite(rows([1, 2, 3, 2], 5))
    table.upsert(rows([1, 2], 6, "both"))
    assert left(table) == [False]


@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_rows_that_are_made_of_two_are_decoded(tmp_path: Path, payload: str) -> None:
    table = made(tmp_path, properties={PAYLOAD: payload})
    table.upsert(rows([1, 2], 6, "a"))
    assert left(table) == [False]


@pytest.mark.parametrize("payload", ["FirstValueAvroPayload", "DefaultHoodieRecordPayload"])
def test_other_rules_for_whole_rows(tmp_path: Path, payload: str) -> None:
    table = made(tmp_path, properties={PAYLOAD: payload})
    table.upsert(rows([1, 2], 5, "equal"))
    table.upsert(rows([1, 3], 6, "a"))
    assert left(table) == [True]


def test_small_blocks_are_decoded(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([1, 2], 6, "a"))
    size = next((tmp_path / "t").glob(".*.log.*")).stat().st_size
    assert left(table, size) == [False]
    assert left(table, size // 2) == [True]


def test_avro_blocks_are_decoded(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([3], 6, "a"))
    table.upsert(rows([1, 2], 6, "a"), options={"hoodie.logfile.data.block.format": "AVRO"})
    assert left(table) == [False]


def test_blocks_of_other_columns_are_decoded(tmp_path: Path) -> None:
    lake = Lakehouse(str(tmp_path))
    lake.create_schema("s")
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor")
    table.bulk_insert(rows(range(9), 5))
    table.upsert(rows([1, 2], 6, "a"))
    assert left(table) == [True]
    with_more = rows([3], 7).append_column("more", pa.array([1]))
    lake.table("s.t").upsert(with_more, options={"hoodie.datasource.write.reconcile.schema": True})
    assert left(lake.table("s.t")) == [False]


def test_bytes_that_no_commit_vouches_for_are_decoded(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([1, 2], 6, "a"))
    newest = max((tmp_path / "t" / ".hoodie").glob("*.deltacommit"))
    commit = json.loads(newest.read_text())
    del commit["lakehouse.seal"], commit["extraMetadata"]["lakehouse.log.checksums"]
    newest.write_text(json.dumps(commit))
    assert left(HoodieTable.open(str(tmp_path / "t"))) == [False]


def test_a_table_without_meta_columns_has_the_same_rows(tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", SCHEMA, ["id"], table_type="mor", properties=buckets))
    ConfigStore(LocalStorage(str(tmp_path / "t"))).update({"hoodie.populate.meta.fields": "false"})
    table = HoodieTable.open(str(tmp_path / "t"))
    for text in ("a", "b"):
        table.upsert(rows([1, 2], 6, text))
    assert left(table, columns=SCHEMA.names) == [True]


def test_columns_of_each_block_are_looked_at(tmp_path: Path) -> None:
    """To Arrow the schemas of Parquet files are equal whose nested columns have other names, and the same leaves in them."""

    def block(name: str) -> ScannedBlock:
        names = [*META_COLUMNS, name]
        tags = pa.array([[1]], pa.list_(pa.int64()))
        content = render_parquet_block(pa.table([*(pa.array(["x"]) for _ in META_COLUMNS), tags], names=names))
        return ScannedBlock(LogBlock(BlockType.PARQUET_DATA, {}, content, length=len(content)), "f")

    def counts(*names: str) -> list[int] | None:
        blocks = tuple(map(block, names))
        end = max(one.block.end for one in blocks)
        piece = LoggedSlice(FileSlice(FileGroupId("", "f"), "1"), (LogPromise("f", "1", 0, end, "checked"),))
        return rows_of_blocks(ScannedLogs(blocks, 1, len(blocks), 0, 0), piece, pa.schema([("tags", pa.list_(pa.int64()))]), 0)

    assert block("tags").block.parquet_footer.schema == block("Tags").block.parquet_footer.schema
    assert counts("tags", "tags") == [1, 1]
    assert counts("tags", "Tags") is None
    assert counts("Tags", "tags") is None
