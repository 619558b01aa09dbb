"""Updates of some columns in merge-on-read tables of versions 8 and 9: what is logged, and that it reads as whole rows do."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.format.avro.avro_schema import load_record
from lakehouse_engine.format.log.blocks import LogBlock
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.table import HoodieTable
from tests.support.readers import assert_same_rows
from tests.support.versions import tables_of
from tests.unit.read.test_base_positions import known, made, rows

OFF = {"hoodie.spark.sql.merge.into.partial.updates": False}
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": 0}


@pytest.fixture(autouse=True, params=[8, 9])
def later_version(request: pytest.FixtureRequest) -> Iterator[None]:
    with tables_of(request.param):
        yield


def blocks(table: HoodieTable) -> list[LogBlock]:
    storage, pieces = table.state.storage, table.state.view.latest_slices()
    return [block for piece in pieces for log in piece.log_files for block in read_blocks(storage.read(log.path))]


def columns_of(block: LogBlock) -> list[str]:
    assert block.schema is not None
    return [field["name"] for field in load_record(block.schema)["fields"]]


def value(table: HoodieTable, key: int, column: str = "v") -> Any:
    return table.to_arrow(["id", column]).sort_by("id")[column].to_pylist()[key]


@pytest.mark.parametrize("options", [{}, {"hoodie.logfile.data.block.format": "AVRO"}])
@pytest.mark.parametrize("ordering", [True, False])
def test_a_log_has_the_updated_columns_and_what_orders_rows(tmp_path: Path, ordering: bool, options: Mapping[str, Any]) -> None:
    table = made(tmp_path, ordering=ordering)
    incoming = rows([40, 3], 7, "a").set_column(3, "day", pa.array(["lost", "lost"]))
    table.upsert(incoming, merge_update_columns=["v"], options=options)
    [block] = blocks(table)
    assert block.is_partial
    assert columns_of(block) == [*META_COLUMNS, *(["ts"] if ordering else []), "v"]
    assert block.record_positions is not None
    assert (value(table, 3), value(table, 3, "day"), value(table, 3, "ts")) == ("a3", "d1", 7 if ordering else 5)
    table.upsert(rows([3], 6, "late"), merge_update_columns=["v"])
    assert value(table, 3) == ("a3" if ordering else "late3")
    before = table.to_arrow(meta_columns=True).sort_by("id")
    known(table)
    table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 1})
    assert_same_rows(table.to_arrow(meta_columns=True), before)
    table.services.compact()
    assert not blocks(table)
    assert_same_rows(table.to_arrow(), before.drop_columns(list(META_COLUMNS)))


def test_incremental_reads_show_whole_rows(tmp_path: Path) -> None:
    table = made(tmp_path)
    [first] = table.timeline
    table.upsert(rows([40, 3], 7, "a"), merge_update_columns=["v"])
    changed = table.to_arrow(query="incremental", begin=table.state.order.moment(first.requested_time)).sort_by("id")
    assert changed.to_pylist() == [{"id": 3, "ts": 7, "v": "a3", "day": "d1"}, {"id": 40, "ts": 7, "v": "a40", "day": "d0"}]


def test_a_batch_that_leaves_columns_out_updates_the_others(tmp_path: Path) -> None:
    table = made(tmp_path)
    options = {"hoodie.datasource.write.reconcile.schema": True}
    table.upsert(rows([40, 3], 7, "a").drop_columns(["day"]), options=options)
    [block] = blocks(table)
    assert columns_of(block) == [*META_COLUMNS, "id", "ts", "v"]
    assert value(table, 40, "day") == "d0"


@pytest.mark.parametrize(
    ("properties", "columns", "options"),
    [
        ({}, ["v"], OFF),
        ({}, ["v", "day"], {}),  # a partition column, by which a record may move
        ({"lakehouse.deletes": "soft"}, ["v"], {}),
    ],
    ids=["switched off", "partition column", "soft deletes"],
)
def test_whole_rows_are_logged_elsewhere(
    tmp_path: Path, properties: Mapping[str, str], columns: list[str], options: Mapping[str, Any]
) -> None:
    table = made(tmp_path, day=True, properties=properties)
    table.upsert(rows([3, 40], 7, "a"), merge_update_columns=columns, options=options)
    assert blocks(table)
    assert not any(block.is_partial for block in blocks(table))
    assert value(table, 3) == "a3"


def test_version_6_logs_whole_rows(tmp_path: Path) -> None:
    with tables_of(6):
        table = made(tmp_path)
    table.upsert(rows([3], 7, "a"), merge_update_columns=["v"])
    assert not any(block.is_partial for block in blocks(table))


def test_a_slice_that_takes_new_rows_has_whole_ones(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([3, 500], 7, "a"), merge_update_columns=["v"])
    assert not blocks(table)
    found = table.to_arrow().sort_by("id").to_pylist()
    assert (found[3], found[-1]) == ({"id": 3, "ts": 7, "v": "a3", "day": "d1"}, {"id": 500, "ts": 7, "v": "a500", "day": "d0"})


def test_a_key_that_comes_back_comes_whole(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.delete(pa.table({"id": [3]}))
    table.upsert(rows([3, 40], 7, "a").set_column(3, "day", pa.array(["new", "lost"])), merge_update_columns=["v"])
    assert not any(block.is_partial for block in blocks(table))
    assert [value(table, key, "day") for key in (3, 40)] == ["new", "d0"]


@pytest.mark.parametrize("ordering", [True, False])
def test_by_commit_time_no_row_comes_back_behind_partial_ones(tmp_path: Path, ordering: bool) -> None:
    """Hudi 1.2.0 could not read the slice."""
    table = made(tmp_path, ordering=ordering)
    table.upsert(rows([40], 7, "a"), merge_update_columns=["v"])
    table.delete(pa.table({"id": [3]}))
    table.upsert(rows([3], 8, "back"))
    assert bool(blocks(table)) is ordering
    assert [value(table, key) for key in (3, 40)] == ["back3", "a40"]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "SIMPLE", "BUCKET"])
@pytest.mark.parametrize("ordering", [True, False])
def test_a_mixed_load_reads_as_if_whole_rows_were_logged(tmp_path: Path, ordering: bool, index: str) -> None:
    chance = random.Random(f"{ordering} {index}")
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table, twin = (made(tmp_path / name, ordering=ordering, properties=properties, first=rows(range(40), 5)) for name in ("t", "twin"))
    partial = 0
    for step in range(8):
        some = chance.sample(range(44), 8)
        kind = chance.choice(["delete", "update", "update", "update", "compact"])
        columns, ts = chance.choice([None, ["v"], ["day"], ["v", "ts"]]), chance.choice([None, 3, 5, 6 + step])
        for one, options in ((table, NO_SMALL_FILES), (twin, {**NO_SMALL_FILES, **OFF})):
            if kind == "delete":
                one.delete(rows(some, None).select(["id"]))
            elif kind == "compact":
                one.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2})
            else:
                one.upsert(rows(some, ts, f"{step}-"), options=options, merge_update_columns=columns)
        assert_same_rows(table.to_arrow(), twin.to_arrow())
        if blocks(table):
            known(table)
        partial += sum(block.is_partial for block in blocks(table))
    assert partial or (index == "BUCKET" and not ordering)
    table.services.compact()
    assert_same_rows(table.to_arrow(), twin.to_arrow())
