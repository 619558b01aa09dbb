"""Tables whose version we changed, and Hudi: it reads and writes both ends; its own upgrade of the same table is held beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, upgrade_table
from lakehouse_engine.errors import UnsupportedTableVersionError
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.view.table_state import TableState
from tests.interop.client import HudiJudge, Query, copy_table
from tests.interop.judging import judging
from tests.interop.shared import rows
from tests.support.fixtures import unpack_spark_fixture
from tests.support.readers import assert_same_rows, first_difference, read_with_hudi_rs
from tests.support.table_builder import TableBuilder

WORDS = {8: "EIGHT", 9: "NINE"}
OURS_ALONE = ("hoodie.timeline.history.path", "hoodie.table.checksum")
"""Properties that Hudi's upgrade leaves out, which has their defaults, or that are made of others."""
REGISTERED = (
    "hoodie.table.create.schema",
    "hoodie.database.name",
    "hoodie.table.timeline.timezone",
    "hoodie.table.legacy.payload.class",
)
"""Registering the table for the call changes these; from 6 to 9 Hudi takes the class of version 6 for the legacy one, whatever the mode."""


@pytest.fixture(scope="module")
def hudi() -> Iterator[HudiJudge]:
    """Hudi 1.2, which takes tables as they are."""
    yield from judging("1.2.0")


@pytest.fixture(scope="module")
def upgrading() -> Iterator[HudiJudge]:
    """Hudi 1.2, which upgrades tables."""
    with HudiJudge("1.2.0", keep_version=False) as judge:
        yield judge


@pytest.fixture(scope="module")
def old_hudi() -> Iterator[HudiJudge]:
    yield from judging("0.15.0")


def without_file_names(table: pa.Table) -> pa.Table:
    return table.drop(["_hoodie_file_name"])


def made(path: Path, table_type: str) -> TableBuilder:
    built = TableBuilder.create(path, partition_by=["region"], ordering="ts", table_type=table_type, index="SIMPLE")
    built.insert(rows(range(8), 1))
    built.upsert(rows(range(4, 12), 2))
    built.delete(rows([1, 7], 3))
    return built


def check_read_by_hudi(hudi: HudiJudge, path: Path, moments: bool) -> None:
    table = HoodieTable.open(str(path))
    times = [one.requested_time for one in table.timeline.completed().writes()]
    asked = [Query(), Query(begin=table.state.order.moment(times[0]), end=table.state.order.moment(times[-1]))]
    asked += [Query(as_of=table.state.order.moment(time)) for time in times[:2]] if moments else []
    for query, theirs in zip(asked, hudi.read_all(path, asked), strict=True):
        kind = "incremental" if query.begin is not None else "snapshot"
        mine = table.to_arrow(meta_columns=True, query=kind, as_of=query.as_of, begin=query.begin, end=query.end)
        assert_same_rows(theirs, mine, what=str(query))
    assert_same_rows(read_with_hudi_rs(path), table.to_arrow(meta_columns=True))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_hudi_reads_both_ends(hudi: HudiJudge, old_hudi: HudiJudge, table_type: str, tmp_path: Path) -> None:
    built = made(tmp_path / "t", table_type)
    for to in (8, 9):
        built.table.upgrade(to)
        built.check_snapshot()
        check_read_by_hudi(hudi, built.path, moments=table_type == "cow")
    built.upsert(rows(range(6, 16), 4))
    check_read_by_hudi(hudi, built.path, moments=table_type == "cow")
    built.table.downgrade(6)
    built.upsert(rows(range(10, 20), 5))
    built.check_snapshot()
    check_read_by_hudi(hudi, built.path, moments=table_type == "cow")
    assert_same_rows(old_hudi.read(built.path), HoodieTable.open(str(built.path)).to_arrow(meta_columns=True))


def decoded(path: Path) -> dict[tuple[str, Action], object]:
    """What each completed instant of the active timeline did, compactions that the change itself made left out."""
    state = TableState.load(HoodieTable.open(str(path)).storage)
    found: dict[tuple[str, Action], object] = {}
    for instant in state.timeline.completed():
        made_now = instant.action is Action.COMMIT and _is_planned(state, instant)
        if not made_now:
            found[instant.requested_time, instant.action] = _content(state, instant)
    return found


def _is_planned(state: TableState, instant: Instant) -> bool:
    """Whether it is a compaction."""
    return any(one.requested_time == instant.requested_time and one.action is Action.COMPACTION for one in state.timeline_files)


def _content(state: TableState, instant: Instant) -> object:
    if not instant.action.is_write:
        return state.active.read(instant)
    metadata = state.commit_metadata(instant)
    stats = {(stat.partition_path, stat.path, stat.num_writes, stat.num_deletes, stat.prev_commit) for stat in metadata.write_stats()}
    return stats, metadata.operation_type, dict(metadata.extra_metadata), metadata.partition_to_replace_file_ids


@pytest.mark.parametrize("to", [8, 9])
@pytest.mark.parametrize("name", ["cow_savepoint_restored_last", "mor_archive", "cow_clustering_pending"])
def test_our_upgrade_beside_that_of_hudi(upgrading: HudiJudge, name: str, to: int, tmp_path: Path) -> None:
    source = unpack_spark_fixture(f"v6-0.15.0/{name}", tmp_path)
    theirs, mine = copy_table(source, tmp_path / "theirs"), copy_table(source, tmp_path / "mine")
    called = f"upgraded_{name}_{to}"
    upgrading.sql(
        f"create table {called} using hudi location '{theirs}'",
        "set hoodie.metadata.enable=false",
        f"call upgrade_table(table => '{called}', to_version => '{WORDS[to]}')",
    )
    HoodieTable.open(str(mine)).upgrade(to)

    found, expected = HoodieTable.open(str(mine)), HoodieTable.open(str(theirs))
    properties = {key: value for key, value in found.config.properties.items() if key not in OURS_ALONE}
    others = {key: value for key, value in expected.config.properties.items() if key not in OURS_ALONE}
    for key in REGISTERED:
        properties.pop(key, None)
        others.pop(key, None)
    assert properties == others
    ours, hudis = decoded(mine), decoded(theirs)
    assert set(ours) == set(hudis)
    assert [key for key in ours if ours[key] != hudis[key]] == []
    rows_now = (without_file_names(table.to_arrow(meta_columns=True)) for table in (found, expected))
    assert first_difference(*rows_now) is None
    archived = {instant.requested_time for instant in found.state.archived_timeline.instants()}
    assert archived == {instant.requested_time for instant in expected.state.archived_timeline.instants()}


@pytest.mark.parametrize("word", ["FIVE", "FOUR", "THREE", "TWO"])
def test_tables_that_hudi_brought_to_older_versions_come_back(old_hudi: HudiJudge, word: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture("v6-0.15.0/mor_compaction_pending", tmp_path)
    before = HoodieTable.open(str(path)).to_arrow(meta_columns=True)
    called = old_hudi.register(path)
    old_hudi.sql("set hoodie.metadata.enable=false", f"call downgrade_table(table => '{called}', to_version => '{word}')")
    with pytest.raises(UnsupportedTableVersionError, match="upgrade"):
        HoodieTable.open(str(path))
    upgrade_table(str(path), to=6)
    table = HoodieTable.open(str(path))
    assert first_difference(without_file_names(table.to_arrow(meta_columns=True)), without_file_names(before)) is None
    assert table.verify(quick=True).ok
    assert_same_rows(old_hudi.read(path), table.to_arrow(meta_columns=True))


def test_a_table_of_version_7_comes_to_6(upgrading: HudiJudge, tmp_path: Path) -> None:
    path = unpack_spark_fixture("v6-0.15.0/cow_deletes", tmp_path)
    before = HoodieTable.open(str(path)).to_arrow(meta_columns=True)
    upgrading.sql(
        f"create table seventh using hudi location '{path}'",
        "set hoodie.metadata.enable=false",
        "call upgrade_table(table => 'seventh', to_version => 'SEVEN')",
    )
    with pytest.raises(UnsupportedTableVersionError, match="version 7"):
        HoodieTable.open(str(path))
    upgrade_table(str(path), to=6)
    assert_same_rows(HoodieTable.open(str(path)).to_arrow(meta_columns=True), before)
