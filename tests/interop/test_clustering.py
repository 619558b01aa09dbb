"""Clusterings that we and Apache Hudi share: Hudi and hudi-rs read what we clustered, plans of one are carried out by the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.model.instant import Instant
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import verify
from tests.interop.client import HudiJudge, Query
from tests.interop.shared import NULLS_IN_LISTS, Shared
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder, rich_row

HUDI = {
    **NULLS_IN_LISTS,
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.parquet.small.file.limit": "0"}
BOTH = pytest.mark.parametrize("table_type", ["cow", "mor"])


def built(path: Path, table_type: str) -> TableBuilder:
    """Several file groups in each partition, some of them updated."""
    table = TableBuilder.create(path, partition_by=["region"], ordering="ts", table_type=table_type, index="SIMPLE", options=QUIET)
    for first in (0, 8, 16):
        table.insert([rich_row(number) for number in range(first, first + 8)])
    table.upsert([rich_row(number, seed=1) for number in (1, 9, 10)])
    return table


def check(table: TableBuilder, hudi: HudiJudge) -> pa.Table:
    ours = table.check_snapshot()
    assert_same_rows(hudi.read(table.path), ours)
    assert_same_rows(read_with_hudi_rs(table.path), ours)
    assert verify(table.table.state).ok
    return ours


def pending(table: HoodieTable) -> list[Instant]:
    return pending_plans(table.state, table.state.format.clustering_action)


@BOTH
@pytest.mark.parametrize("layout", ["linear", "hilbert"])
def test_hudi_reads_what_we_clustered_and_writes_on(hudi: HudiJudge, table_type: str, layout: str, tmp_path: Path) -> None:
    table = built(tmp_path / "t", table_type)
    begin = table.table.timeline.completed().writes().instants[0].requested_time
    result = table.table.cluster(order_by=["ts", "id"], layout=layout)
    assert result.files_replaced > result.files_created > 0
    check(table, hudi)
    changed = table.table.to_arrow(query="incremental", begin=begin, meta_columns=True)
    assert_same_rows(hudi.read_all(table.path, [Query(begin=begin)])[0], changed)
    shared = Shared(table, hudi, index="SIMPLE", conf=NULLS_IN_LISTS)
    shared.upsert([rich_row(number, seed=2) for number in (2, 9, 30)])
    shared.delete([rich_row(3)])
    shared.check()
    table.table.cluster(order_by=["id"])
    check(table, hudi)


@BOTH
def test_hudi_reads_beside_our_plan_and_carries_it_out(hudi: HudiJudge, table_type: str, tmp_path: Path) -> None:
    table = built(tmp_path / "t", table_type)
    planned = table.table.cluster("schedule", order_by=["ts"])
    check(table, hudi)
    table.upsert([rich_row(1, seed=3)])
    left = pending(table.table)
    assert [one.requested_time for one in left] == [planned.instant]
    check(table, hudi)
    hudi.call("run_clustering", op="execute", path=str(table.path), conf=HUDI)
    assert pending(table.table) == []
    check(table, hudi)
    table.upsert([rich_row(2, seed=3)])
    table.table.cluster(order_by=["id"])
    check(table, hudi)


@BOTH
def test_we_carry_out_the_plan_of_hudi(hudi: HudiJudge, table_type: str, tmp_path: Path) -> None:
    table = built(tmp_path / "t", table_type)
    hudi.call("run_clustering", op="schedule", order="ts", path=str(table.path), conf=HUDI)
    (planned,) = pending(table.table)
    table.upsert([rich_row(1, seed=3)])
    check(table, hudi)
    done = table.table.cluster("run")
    assert (done.instant, done.state) == (planned.requested_time, "completed")
    check(table, hudi)
    hudi.call("run_clustering", op="scheduleAndExecute", order="id", path=str(table.path), conf=HUDI)
    check(table, hudi)
