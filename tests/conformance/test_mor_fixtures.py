"""Every merge-on-read table that Hudi wrote in table version 6, with its logs, read as Hudi reads it.

As in `test_read_fixtures`, with snapshots, time travel and incremental reads of merge-on-read tables: columns, types, values and meta
columns are compared row by row. Every difference is listed with its reason, and must still be there.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import InstantCleanedError, OptionError, UnsupportedTableError
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.data_block import decode_data_block, render_avro_block
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block, encode_delete_content
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.read.arrow_scan import iter_arrow, read_arrow
from lakehouse_engine.read.query import Query
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_read_fixtures import AS_OF, FILES_THERE, NOT_READ, Reading, check_refused, expected, read, readings, refusal_for
from tests.support.fixtures import (
    Unpack,
    expected_readings,
    fixtures_root,
    rs_fixtures,
    spark_fixtures,
    unpack_rs_fixture,
)
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

READINGS = readings("mor", ("snapshot", "as_of", "incremental"))
CDC_READINGS = readings("mor", ("cdc",))
"""What changed, with the rows before: refused (`query='cdc'` is no query)."""

READ_RIGHT: dict[Reading, str] = {
    Reading("v6-0.15.0/mor_archive", "as_of_20261121075843479"): FILES_THERE,
    Reading("v6-0.15.0/mor_clean_commits", "as_of_20261121075532495"): FILES_THERE,
    Reading("v6-0.15.0/mor_clean_commits", "as_of_20261121075542246"): FILES_THERE,
    Reading("v6-0.15.0/mor_rollback_lazy", "as_of_20261121083718892"): FILES_THERE,
    Reading("v6-0.15.0/mor_rollback_lazy", "as_of_20261121083721377"): FILES_THERE,
    Reading("v6-0.15.0/mor_rollback_lazy", "as_of_20261121083734788"): FILES_THERE,
}
"""Hudi answers with an error, we with rows; checked against hudi-rs, which reads by listing."""

SILENTLY_SHORT: dict[Reading, str] = {
    Reading("v6-0.15.0/mor_clean_versions", f"as_of_{time}"): "after a clean by file versions Hudi returns what is left; we refuse"
    for time in ("20261121075603258", "20261121075604829", "20261121075607539", "20261121075609981", "20261121075612002")
}

READ_NONETHELESS = frozenset({Reading("v6-0.15.0/mor_bootstrap_metadata_only", "incremental_00000000000001_20261121082212549")})
"""Readings of tables refused by name that touch nothing of what is refused."""

@pytest.mark.parametrize("reading", READINGS, ids="-".join)
def test_a_reading_has_the_rows_that_hudi_reads(reading: Reading, unpack: Unpack) -> None:
    path = unpack(reading.table)
    entry = expected_readings(reading.table)[1][reading.name]
    options = {key: str(value) for key, value in dict(entry["options"]).items()}  # type: ignore[call-overload]
    if reading.table in NOT_READ and reading not in READ_NONETHELESS:
        check_refused(path, reading, options, UnsupportedTableError)
    elif reading in SILENTLY_SHORT:
        assert "rows" in entry
        check_refused(path, reading, options, InstantCleanedError)
    elif reading in READ_RIGHT:
        assert "error" in entry
        assert_same_rows(read(path, reading, options), read_with_hudi_rs(path, as_of=options.get(AS_OF)))
    elif "error" in entry:
        cleaned = "FileNotFoundException" in str(entry["error"])
        check_refused(path, reading, options, InstantCleanedError if cleaned else refusal_for(str(entry["error"])))
    else:
        assert_same_rows(read(path, reading, options), expected(reading))


def test_every_listed_difference_is_about_a_reading_that_there_is() -> None:
    assert {*READ_RIGHT, *SILENTLY_SHORT, *READ_NONETHELESS} <= set(READINGS)


def test_change_data_capture_is_no_query() -> None:
    assert len(CDC_READINGS) >= 9
    with pytest.raises(OptionError, match="cdc"):
        Query("cdc")


@pytest.mark.parametrize("table", ["v6-0.15.0/mor_deletes", "v6-0.15.0/mor_bucket", "v6-0.15.0/mor_types", "v6-0.15.0/mor_no_meta_fields"])
def test_single_columns_and_pieces_are_those_of_the_whole_reading(table: str, unpack: Unpack) -> None:
    plan = plan_snapshot(TableState.load(LocalStorage(str(unpack(table)))))
    whole = read_arrow(plan)
    for name in whole.column_names:
        assert_same_rows(read_arrow(plan, columns=[name]), whole.select([name]))
    assert read_arrow(plan, columns=[]).num_rows == whole.num_rows
    assert_same_rows(pa.concat_tables(list(iter_arrow(plan))), whole)


LOGS = spark_fixtures(table_type="mor")


@pytest.mark.parametrize("table", LOGS)
def test_blocks_are_written_byte_for_byte_as_hudi_wrote_them(table: str, unpack: Unpack) -> None:
    for path in unpack(table).glob("**/.*.log.*"):
        if ".hoodie" in path.parts or path.suffix == ".cdc":
            continue
        blocks = list(read_blocks(path.read_bytes()))
        assert b"".join(render_block(block.type, block.header, block.content, block.footer) for block in blocks) == path.read_bytes()
        for block in blocks:
            if block.type is BlockType.AVRO_DATA:
                assert block.schema is not None
                assert render_avro_block(block.schema, decode_data_block(block)) == bytes(block.content)
            elif block.type is BlockType.DELETE:
                records = decode_delete_block(block)
                (wrapper,) = set(records.wrappers.tolist())
                values = records.values[Wrapper(wrapper)]
                assert encode_delete_content(records.keys, records.partition_paths, values) == bytes(block.content)


RS_TABLES = [name for name in rs_fixtures("mor") if "__v6_" in name]


@pytest.mark.parametrize("name", RS_TABLES)
def test_the_tables_of_hudi_rs_read_as_it_reads_them(name: str, tmp_path: Path) -> None:
    path = unpack_rs_fixture(name, tmp_path)
    state = TableState.load(LocalStorage(str(path)))
    meta = state.config.populates_meta_fields
    if not meta:
        # Without meta columns hudi-rs puts the rows of logs beside those that they replace.
        rows = read_arrow(plan_snapshot(state)).to_pylist()
        assert sorted((row["id"], row["name"], row["isActive"]) for row in rows) == NO_META_ROWS
        return
    assert_same_rows(read_arrow(plan_snapshot(state), meta_columns=True), read_with_hudi_rs(path))
    times = [write.requested_time for write in state.timeline.completed().writes()]
    for time in times:
        assert_same_rows(read_arrow(plan_snapshot(state, time), meta_columns=True), read_with_hudi_rs(path, as_of=time))
    for begin, end in combinations(["000", *times], 2):
        ours = read_arrow(plan_incremental(state, begin, end), meta_columns=True)
        assert_same_rows(ours, read_with_hudi_rs(path, begin=begin, end=end))


NO_META_ROWS = [(1, "Alice", False), (2, "Bob", False), (3, "Carol", True), (4, "Diana", True)]


def test_the_trips_of_the_quickstart_lose_the_deleted_rows(tmp_path: Path) -> None:
    name = next(name for name in RS_TABLES if name.endswith("v6_trips_8i3d"))
    state = TableState.load(LocalStorage(str(unpack_rs_fixture(name, tmp_path))))
    first = state.timeline.completed().writes().first()
    assert first is not None
    before = {row["rider"]: row["fare"] for row in user_columns(read_arrow(plan_snapshot(state, first.requested_time))).to_pylist()}
    assert (before["rider-A"], before["rider-C"], before["rider-D"]) == (19.10, 27.70, 33.90)
    after = {row["rider"] for row in read_arrow(plan_snapshot(state)).to_pylist()}
    assert len(after) == 5
    assert not after & {"rider-A", "rider-C", "rider-D"}
