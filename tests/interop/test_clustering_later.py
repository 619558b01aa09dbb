"""As `test_clustering`, for tables of version 9 and Hudi 1.2: a pending clustering has an action of its own there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_engine.model.instant import Action
from tests.interop.client import HudiJudge
from tests.interop.judging import judging
from tests.interop.shared import NULLS_IN_LISTS, Shared
from tests.interop.test_clustering import BOTH, HUDI, built, check, pending
from tests.support.table_builder import TableBuilder, rich_row
from tests.support.versions import tables_of

NINE = {"hoodie.write.table.version": "9", "hoodie.write.auto.upgrade": "false"}


@pytest.fixture(scope="session")
def hudi() -> Iterator[HudiJudge]:
    yield from judging("1.2.0")


def built_nine(path: Path, table_type: str) -> TableBuilder:
    with tables_of(9):
        return built(path, table_type)


@BOTH
def test_hudi_reads_what_we_clustered_and_writes_on(hudi: HudiJudge, table_type: str, tmp_path: Path) -> None:
    table = built_nine(tmp_path / "t", table_type)
    assert table.table.cluster(order_by=["ts", "id"], layout="z_order").files_created > 0
    check(table, hudi)
    shared = Shared(table, hudi, index="SIMPLE", more=NINE, conf={**NULLS_IN_LISTS, **NINE})
    shared.upsert([rich_row(number, seed=2) for number in (2, 9, 30)])
    shared.check()
    table.table.cluster(order_by=["id"])
    check(table, hudi)


@BOTH
def test_plans_are_carried_out_by_the_other(hudi: HudiJudge, table_type: str, tmp_path: Path) -> None:
    table = built_nine(tmp_path / "t", table_type)
    planned = table.table.cluster("schedule", order_by=["ts"])
    check(table, hudi)
    table.upsert([rich_row(1, seed=3)])
    assert [(one.requested_time, one.action) for one in pending(table.table)] == [(planned.instant, Action.CLUSTERING)]
    check(table, hudi)
    hudi.call("run_clustering", op="execute", path=str(table.path), conf={**HUDI, **NINE})
    assert pending(table.table) == []
    check(table, hudi)
    hudi.call("run_clustering", op="schedule", order="id", path=str(table.path), conf={**HUDI, **NINE})
    (theirs,) = pending(table.table)
    table.upsert([rich_row(2, seed=3)])
    assert table.table.cluster("run").instant == theirs.requested_time
    check(table, hudi)
