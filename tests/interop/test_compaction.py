"""Compactions that we and Apache Hudi share: plans of one carried out by the other, log blocks merged by us and compacted by Hudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.model.instant import Action
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import verify
from tests.interop.client import HudiJudge
from tests.interop.shared import NULLS_IN_LISTS
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder, rich_row

FILE_NAME = "_hoodie_file_name"
HUDI = {
    **NULLS_IN_LISTS,
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
}


def built(path: Path, block_format: str) -> TableBuilder:
    """Three file groups with updates and deletes in their logs."""
    quiet = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.logfile.data.block.format": block_format}
    table = TableBuilder.create(path, partition_by=["region"], ordering="ts", table_type="mor", index="SIMPLE", options=quiet)
    table.upsert([rich_row(number) for number in range(12)])
    for seed in (1, 2):
        table.upsert([rich_row(number, seed=seed) for number in range(seed, 9)])
    table.delete([rich_row(number, seed=2) for number in (2, 7, 11)])
    return table


def check(table: TableBuilder, hudi: HudiJudge) -> pa.Table:
    ours = table.check_snapshot()
    assert_same_rows(hudi.read(table.path), ours)
    assert_same_rows(read_with_hudi_rs(table.path), ours)
    assert verify(table.table.state).ok
    return ours


def newest(table: HoodieTable, action: Action) -> str:
    return [instant.requested_time for instant in table.timeline if instant.action is action][-1]


@pytest.mark.parametrize("block_format", ["PARQUET", "AVRO"])
def test_hudi_reads_and_compacts_the_blocks_that_we_merged(hudi: HudiJudge, block_format: str, tmp_path: Path) -> None:
    table = built(tmp_path / "t", block_format)
    before = check(table, hudi)
    options = {"hoodie.log.compaction.blocks.threshold": "2", "hoodie.logfile.data.block.format": block_format}
    assert table.table.log_compact(options=options).files_created == 3
    assert_same_rows(check(table, hudi), before)
    table.upsert([rich_row(number, seed=3) for number in (1, 2, 12)])
    assert table.table.log_compact(options=options).files_created
    check(table, hudi)
    compact_with_hudi(hudi, table.path)
    assert table.table.timeline.find(newest(table.table, Action.COMMIT)) is not None
    check(table, hudi)


def compact_with_hudi(hudi: HudiJudge, path: Path, *ops: str) -> None:
    for op in ops or ("schedule", "run"):
        hudi.call("run_compaction", op=op, path=str(path), conf=HUDI)


@pytest.mark.parametrize("block_format", ["PARQUET", "AVRO"])
def test_hudi_carries_out_our_plan(hudi: HudiJudge, block_format: str, tmp_path: Path) -> None:
    table = built(tmp_path / "t", block_format)
    scheduled = table.table.compact("schedule")
    table.upsert([rich_row(number, seed=3) for number in range(4)])
    compact_with_hudi(hudi, table.path, "run")
    assert newest(table.table, Action.COMMIT) == scheduled.instant
    check(table, hudi)
    table.table.compact()
    check(table, hudi)


def test_we_carry_out_the_plan_of_hudi(hudi: HudiJudge, tmp_path: Path) -> None:
    table = built(tmp_path / "t", "AVRO")
    compact_with_hudi(hudi, table.path, "schedule")
    scheduled = newest(table.table, Action.COMPACTION)
    table.upsert([rich_row(number, seed=3) for number in range(4)])
    table.check_snapshot()
    assert table.table.compact("run").instant == scheduled
    check(table, hudi)
    compact_with_hudi(hudi, table.path)
    check(table, hudi)
