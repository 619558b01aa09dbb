"""Log files of delta commits: what stands in them, in the commit record, and how much memory they take."""

from __future__ import annotations

import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.errors import StorageError
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.delete_block import decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import META_COLUMNS, FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.record.merging.mergers import EventTime
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.storage.faults import Fault, FaultyStorage
from lakehouse_engine.write.source import MemorySource
from lakehouse_engine.write.tasks import append as append_module
from lakehouse_engine.write.tasks.append import AppendTask, GroupAppend, append_logs, append_tasks
from lakehouse_engine.write.tasks.buffer import BucketBuffer
from tests.support.delta_table import DeltaTable, numbers
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns
from tests.support.table_builder import RICH, rich_row

SMALL = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
RULES = MergeRules(EventTime(), OrderingFields.of(["ts"], SMALL))


def small(ids: range, v: str = "a", ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids), "ts": [ts] * len(ids)}, schema=SMALL)


def rich(ids: range, seed: int = 0) -> pa.Table:
    return pa.Table.from_pylist([rich_row(number, seed) for number in ids], schema=RICH)


def append(table: DeltaTable, rows: pa.Table, *, deletes: tuple[str, ...] = (), inserts: int = 0) -> HoodieWriteStat:
    """A commit that logs all rows to the table's group."""
    source, piece = table.keyed(rows), table.piece()
    given = GroupAppend(piece, piece.base_instant, numbers(rows.num_rows), inserts, pa.array(deletes, pa.string()))
    [stat] = table.commit(lambda context: append_logs(AppendTask(context, 1, (given,), source)))
    return stat


def blocks(table: DeltaTable, stat: HoodieWriteStat) -> list[LogBlock]:
    assert stat.path is not None
    return list(read_blocks((table.folder / stat.path).read_bytes()))


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_logged_rows_of_every_type_are_read_by_us_and_by_hudi_rs(tmp_path: Path, form: str, partitioned: bool) -> None:
    options = {"hoodie.logfile.data.block.format": form}
    table = DeltaTable(tmp_path / "t", RICH, ordering="ts", partition_by=["region"] if partitioned else [], options=options)
    place = "region=north" if partitioned else ""
    ids = range(0, 30, 3)
    table.insert(rich(ids), place)
    append(table, rich(range(0, 15, 3), seed=1), deletes=("18", "21"))
    append(table, rich(range(6, 27, 3), seed=2))
    # Keys 18 and 21 come back after their deletion, with a higher ordering value than they were stored with.
    expected = pa.concat_tables([rich(range(0, 6, 3), seed=1), rich(range(6, 27, 3), seed=2), rich(range(27, 30, 3))])
    assert_same_rows(user_columns(table.read()), expected)
    assert_same_rows(read_with_hudi_rs(table.folder), table.read())


def test_deleted_keys_are_gone_for_us_and_for_hudi_rs(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", partition_by=["v"])
    table.insert(small(range(5)), "v=a")
    stat = append(table, small(range(2), ts=2), deletes=("3", "4"))
    data, deletions = blocks(table, stat)
    assert (data.type, deletions.type) == (BlockType.PARQUET_DATA, BlockType.DELETE)
    entries = decode_delete_block(deletions)
    assert (entries.keys.to_pylist(), entries.partition_paths.to_pylist()) == (["3", "4"], ["v=a", "v=a"])
    assert entries.always().all()
    assert sorted(table.read().column("id").to_pylist()) == [0, 1, 2]
    assert_same_rows(read_with_hudi_rs(table.folder), table.read())


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_blocks_say_who_wrote_them_and_rows_carry_the_meta_columns(tmp_path: Path, form: str) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", options={"hoodie.logfile.data.block.format": form})
    table.insert(small(range(3)))
    stat = append(table, small(range(2), ts=2))
    [block] = blocks(table, stat)
    instant = table.state.timeline.completed().instants[-1].requested_time
    assert set(block.header) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
    assert block.instant_time == instant
    rows = decode_data_block(block)
    assert rows.column_names == [*META_COLUMNS, *SMALL.names]
    assert rows.select(list(META_COLUMNS)).to_pylist() == [
        dict(zip(META_COLUMNS, (instant, f"{instant}_1_{row}", str(row), "", "group-0"), strict=True)) for row in range(2)
    ]


def test_rows_of_a_table_without_meta_columns_carry_none(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", meta_fields=False)
    table.insert(small(range(3)))
    [block] = blocks(table, append(table, small(range(2), ts=2)))
    assert decode_data_block(block).select(list(META_COLUMNS)).to_pylist() == [dict.fromkeys(META_COLUMNS)] * 2
    assert sorted(table.read().column("ts").to_pylist()) == [1, 2, 2]


def test_the_stat_of_a_log_file_is_as_hudis(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    [base] = table.insert(small(range(5)))
    first = append(table, small(range(1), ts=2))
    second = append(table, small(range(3, 7), ts=3), inserts=2, deletes=("1",))
    assert base.path is not None
    assert first.path is not None
    assert second.path is not None
    began = base.path.rpartition("_")[2].removesuffix(".parquet")
    assert second.path.startswith(f".group-0_{began}.log.2_1-0-")
    content = (table.folder / second.path).read_bytes()
    assert second == HoodieWriteStat(
        file_id="group-0",
        path=second.path,
        prev_commit=began,
        partition_path="",
        num_writes=4,
        num_deletes=1,
        num_update_writes=2,
        num_inserts=2,
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
        log_version=2,
        log_offset=0,
        checksum=f"{zlib.crc32(content):08x}",
        base_file=base.path,
        log_files=(first.path, second.path),
    )


def test_logs_of_a_pending_compactions_slice_start_again_without_a_base_file(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    table.insert(small(range(3)))
    append(table, small(range(1), ts=2))
    source, piece = table.keyed(small(range(1), ts=3)), table.piece()
    context = table.open_context("20990101000000002")
    [status] = append_logs(AppendTask(context, 0, (GroupAppend(piece, "20990101000000001", numbers(1)),), source))
    stat = status.stat
    assert stat is not None
    assert (stat.log_version, stat.base_file, stat.prev_commit) == (1, "", "20990101000000001")
    assert stat.log_files == (stat.path,)


def test_a_marker_is_there_before_the_log_file_and_the_partition_is_made_known(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", partition_by=["v"])
    watched = FaultyStorage(table.storage)
    context = replace(table.open_context("20990101000000001"), storage=watched)
    piece = FileSlice(FileGroupId("v=b", "group-1"), "20990101000000001")
    [status] = append_logs(AppendTask(context, 0, (GroupAppend(piece, piece.base_instant, numbers(2)),), table.keyed(small(range(2), "b"))))
    assert status.stat is not None
    log = status.stat.path
    assert watched.mutations == [
        f"create .hoodie/.temp/20990101000000001/{log}.marker.APPEND",
        "create v=b/.hoodie_partition_metadata",
        f"open_output {log}",
    ]


def test_a_group_without_rows_or_deletes_gets_no_file(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    table.insert(small(range(3)))
    context = table.open_context("20990101000000001")
    before = sorted(path.name for path in table.folder.rglob("*"))
    given = GroupAppend(table.piece(), table.piece().base_instant, numbers(0))
    [status] = append_logs(AppendTask(context, 0, (given,), table.keyed(small(range(0)))))
    assert status.stat is None
    assert sorted(path.name for path in table.folder.rglob("*")) == before


def groups_of(rows: int, groups: int) -> list[GroupAppend]:
    return [
        GroupAppend(FileSlice(FileGroupId("", f"group-{number}"), "20260101000000000"), "20260101000000000", numbers(rows)[number::groups])
        for number in range(groups)
    ]


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_a_write_far_larger_than_its_buffers_makes_blocks_of_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    options = {"write.batch.size": "1", "write.task.max.size": "3", "hoodie.logfile.data.block.format": form}
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", options=options)
    buffers: list[BucketBuffer] = []
    taken: list[int] = []
    made = append_module.BucketBuffer
    monkeypatch.setattr(append_module, "BucketBuffer", lambda *given: buffers.append(made(*given)) or buffers[-1])
    monkeypatch.setattr(MemorySource, "take", lambda self, rows: taken.append(len(rows)) or self.table.take(pa.array(rows)))
    rows, groups = 240_000, 6
    source = table.keyed(small(range(rows), "v" * 100))
    row_bytes = source.table.nbytes / rows
    assert source.table.nbytes > 9 * 3 * 1024**2
    [task] = append_tasks(table.open_context("20990101000000001"), groups_of(rows, groups), source, 0, 1)
    stats = [status.stat for status in append_logs(task)]

    megabyte = 1024**2
    assert buffers[0].largest <= 3.2 * megabyte
    assert max(taken) * row_bytes <= megabyte
    seqnos: list[str] = []
    for number, stat in enumerate(stats):
        assert stat is not None
        assert stat.num_writes == rows // groups
        parts = [decode_data_block(block) for block in blocks(table, stat)]
        assert len(parts) >= 5
        assert pa.concat_tables(parts).column("id").to_pylist() == list(range(number, rows, groups))
        assert all(part.num_rows * row_bytes <= 1.2 * megabyte for part in parts)
        seqnos += pa.concat_tables(parts).column("_hoodie_commit_seqno").to_pylist()
    assert len(set(seqnos)) == rows


def test_a_small_batch_makes_one_block_a_group(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    source = table.keyed(small(range(30_000), "v" * 20))
    [task] = append_tasks(table.open_context("20990101000000001"), groups_of(30_000, 3), source, 0, 1)
    for status in append_logs(task):
        assert status.stat is not None
        assert len(blocks(table, status.stat)) == 1


def test_rows_of_one_key_are_reduced_in_the_buffer_when_asked(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts", options={"write.precombine": "true"})
    rows = pa.concat_tables([small(range(3), ts=5), small(range(1, 3), ts=7), small(range(2, 3), ts=6), small(range(1), ts=5)])
    given = GroupAppend(groups_of(0, 1)[0].piece, "20260101000000000", numbers(rows.num_rows), inserts=rows.num_rows)
    task = append_tasks(table.open_context("20990101000000001"), [given], table.keyed(rows), 0, 1, RULES)[0]
    [status] = append_logs(task)
    assert status.stat is not None
    logged = decode_data_block(blocks(table, status.stat)[0]).select(["id", "ts"]).to_pylist()
    assert logged == [{"id": 1, "ts": 7}, {"id": 2, "ts": 7}, {"id": 0, "ts": 5}]
    assert (status.stat.num_writes, status.stat.num_inserts, status.stat.num_update_writes) == (3, 3, 0)


def test_groups_are_shared_out_by_their_rows() -> None:
    sizes = [100_000, 10, 60_000, 50_000, 0, 5]
    groups = [
        GroupAppend(FileSlice(FileGroupId("", f"group-{number}"), "1"), "1", np.arange(size, dtype=np.int64))
        for number, size in enumerate(sizes)
    ]
    context: Any = type("Context", (), {"options": type("Options", (), {"task_max_size_mb": 1024})})
    tasks = append_tasks(context, groups, MemorySource(small(range(0))), 7, 2)
    assert [task.task for task in tasks] == [7, 8]
    assert sorted(group.piece.file_id for task in tasks for group in task.groups) == [f"group-{number}" for number in range(6)]
    loads = [sum(len(group.rows) for group in task.groups) for task in tasks]
    assert max(loads) <= 1.1 * sum(sizes) / 2
    assert {task.buffer_bytes for task in tasks} == {512 * 1024**2}
    many = append_tasks(context, groups * 50, MemorySource(small(range(0))), 0, 2)
    assert max(len(task.groups) for task in many) <= 64
    began = time.process_time()
    most = append_tasks(context, groups * 10_000, MemorySource(small(range(0))), 0, 2)
    assert sum(len(task.groups) for task in most) == 60_000
    assert time.process_time() - began < 3, "groups times tasks: it took half a minute"


def test_a_log_file_that_cannot_be_made_is_told_and_has_its_marker(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    table.insert(small(range(3)))
    context = replace(table.open_context("20990101000000001"), storage=FaultyStorage(table.storage, 2, Fault.TRANSIENT))
    given = GroupAppend(table.piece(), table.piece().base_instant, numbers(3))
    with pytest.raises(StorageError):
        append_logs(AppendTask(context, 0, (given,), table.keyed(small(range(3), ts=2))))
    assert not list(table.folder.glob(".*.log.*"))
    assert len(list((table.folder / ".hoodie" / ".temp").rglob("*.marker.APPEND"))) == 1
