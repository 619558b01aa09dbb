"""Slices with logs written as base files, with changes applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.keys import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.tasks.append import AppendTask, GroupAppend, append_logs
from lakehouse_engine.write.tasks.slice_merge import SliceMergeTask, merge_slice
from tests.support.delta_table import DeltaTable, numbers
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns
from tests.support.table_builder import RICH, rich_row

SMALL = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])


def small(ids: range | list[int], v: str = "a", ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids), "ts": [ts] * len(ids)}, schema=SMALL)


def append(table: DeltaTable, rows: pa.Table, *, deletes: tuple[str, ...] = ()) -> HoodieWriteStat:
    source, piece = table.keyed(rows), table.piece()
    given = GroupAppend(piece, piece.base_instant, numbers(rows.num_rows), deletes=pa.array(deletes, pa.string()))
    [stat] = table.commit(lambda context: append_logs(AppendTask(context, 1, (given,), source)))
    return stat


def merge(table: DeltaTable, rows: pa.Table, *, deletes: tuple[str, ...] = (), seqnos: tuple[str, ...] = ()) -> list[HoodieWriteStat]:
    """A commit that writes the table's slice anew with all rows."""
    source, piece, reader = table.keyed(rows), table.logged(), table.reader()
    texts = [pa.array(names, pa.string()) for names in (deletes, seqnos)]
    return table.commit(
        lambda context: [merge_slice(SliceMergeTask(context, 3, piece, reader, source, numbers(rows.num_rows), *texts))],
        Action.COMMIT,
    )


def table_with_logs(folder: Path, **given: Any) -> DeltaTable:
    """Ids 0 to 5 in the base file, of which 0 is updated and 5 deleted in logs, and 9 in logs only."""
    table = DeltaTable(folder, SMALL, ordering="ts", **given)
    table.insert(small(range(6)))
    append(table, small([0, 9], "log", 2), deletes=("5",))
    return table


def content(table: DeltaTable) -> dict[int, str]:
    rows = table.read()
    return dict(sorted(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True)))


@pytest.mark.parametrize("meta_fields", [True, False])
@pytest.mark.parametrize("group_rows", [2, 100])
def test_changed_rows_replace_stored_ones_and_others_stay(tmp_path: Path, meta_fields: bool, group_rows: int) -> None:
    options = {"lakehouse.parquet.row.group.rows": group_rows}
    table = table_with_logs(tmp_path / "t", meta_fields=meta_fields, options=options)
    [stat] = merge(table, small([0, 1, 5, 9, 20], "new", 3), deletes=("3", "77"))
    assert content(table) == {0: "new", 1: "new", 2: "a", 4: "a", 5: "new", 9: "new", 20: "new"}
    assert not table.piece().log_files
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (7, 3, 2, 1)
    if meta_fields:
        assert_same_rows(read_with_hudi_rs(table.folder), table.read())


def test_kept_rows_keep_their_commit_and_new_ones_have_this_one(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t")
    before = {row["id"]: row for row in table.read().to_pylist()}
    [stat] = merge(table, small([1, 20], "new", 3))
    instant = table.state.timeline.completed().instants[-1].requested_time
    assert stat.path is not None
    for row in table.read().to_pylist():
        assert row[FILE_NAME] == stat.path
        if row["id"] in (1, 20):
            assert row[COMMIT_TIME] == instant
            assert row[COMMIT_SEQNO].startswith(f"{instant}_3_")
        else:
            assert {**row, FILE_NAME: ""} == {**before[row["id"]], FILE_NAME: ""}
    seqnos = table.read().column(COMMIT_SEQNO).to_pylist()
    assert len(set(seqnos)) == len(seqnos)


def test_the_stat_is_that_of_a_new_version_of_the_file(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t")
    base = table.piece().base_file
    assert base is not None
    [stat] = merge(table, small([1], "new", 3))
    now = table.piece().base_file
    assert now is not None
    size = (table.folder / now.path).stat().st_size
    assert stat == HoodieWriteStat(
        file_id="group-0",
        path=now.path,
        prev_commit=base.instant_time,
        partition_path="",
        num_writes=6,
        num_update_writes=1,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


def test_rows_named_by_number_are_dropped(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t")
    numbers_of = {row["id"]: row[COMMIT_SEQNO] for row in table.read().to_pylist()}
    [stat] = merge(table, small([30], "new"), seqnos=(numbers_of[2], numbers_of[9], "20200101000000000_0_0"))
    assert content(table) == {0: "log", 1: "a", 3: "a", 4: "a", 30: "new"}
    assert (stat.num_deletes, stat.num_inserts) == (2, 1)


def test_nothing_to_change_makes_no_stat_and_the_commit_leaves_no_file(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t")
    files = sorted(path.name for path in table.folder.glob("*.parquet"))
    assert merge(table, small([]), deletes=("77",)) == []
    assert sorted(path.name for path in table.folder.glob("*.parquet")) == files


def test_a_slice_of_logs_only_gets_its_first_base_file(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")

    def log_only(context: Any) -> Any:
        piece = FileSlice(FileGroupId("", "group-0"), context.instant_time)
        given = GroupAppend(piece, context.instant_time, numbers(4), inserts=4)
        return append_logs(AppendTask(context, 0, (given,), table.keyed(small(range(4), "log"))))

    table.commit(log_only)
    began = table.piece().base_instant
    [stat] = merge(table, small([1, 7], "new", 2), deletes=("0",))
    assert stat.prev_commit == began
    assert content(table) == {1: "new", 2: "log", 3: "log", 7: "new"}
    assert_same_rows(read_with_hudi_rs(table.folder), table.read())


def test_the_bloom_filter_of_the_new_file_knows_keys_of_the_base_of_logs_and_new_ones(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t", options={"lakehouse.parquet.row.group.rows": 2})
    merge(table, small([20], "new", 3))
    base = table.piece().base_file
    assert base is not None
    footer = pq.ParquetFile(table.folder / base.path).metadata.metadata
    bloom = BloomFilter.from_base64(footer[b"org.apache.hudi.bloomfilter"].decode(), footer[b"hoodie_bloom_filter_type_code"].decode())
    assert bloom.might_contain(pa.array(["0", "1", "2", "3", "4", "9", "20"])).all()
    assert (footer[b"hoodie_min_record_key"], footer[b"hoodie_max_record_key"]) == (b"0", b"9")


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_rows_of_every_type_come_through(tmp_path: Path, form: str) -> None:
    table = DeltaTable(tmp_path / "t", RICH, ordering="ts", options={"hoodie.logfile.data.block.format": form})

    def rich(ids: range, seed: int = 0) -> pa.Table:
        return pa.Table.from_pylist([rich_row(number, seed) for number in ids], schema=RICH)

    table.insert(rich(range(20)))
    append(table, rich(range(5, 25), seed=1))
    before = table.read()
    merge(table, rich(range(30, 33), seed=2))
    assert_same_rows(user_columns(table.read()), pa.concat_tables([user_columns(before), rich(range(30, 33), seed=2)]))
    assert table.read().schema.names[:5] == list(META_COLUMNS)
    assert_same_rows(read_with_hudi_rs(table.folder), table.read())


def test_a_column_added_by_the_write_is_null_in_kept_rows(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path / "t")
    wider = pa.schema([*SMALL, ("extra", pa.int32())])
    reader, piece = table.reader(), table.logged()
    table.schema = wider
    source = table.keyed(pa.table({"id": [1], "v": ["new"], "ts": [5], "extra": [7]}, schema=wider))
    table.commit(lambda context: [merge_slice(SliceMergeTask(context, 0, piece, reader, source, numbers(1)))], Action.COMMIT)
    base = table.piece().base_file
    assert base is not None
    stored = pq.read_table(table.folder / base.path, columns=["id", "extra"]).to_pylist()
    assert {row["id"]: row["extra"] for row in stored} == {0: None, 1: 7, 2: None, 3: None, 4: None, 9: None}
