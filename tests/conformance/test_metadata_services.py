"""Metadata tables that Hudi made are compacted, cleaned and archived by us, and say what they said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.format.hfile.reader import InMemory, open_hfile
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable
from lakehouse_engine.metadata_table.written import unmerged
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.options import MetadataTableOptions, ServiceOptions
from lakehouse_engine.services import inline
from lakehouse_engine.services.executor import scheduling
from lakehouse_engine.services.metadata.clock import COMPACTION_SUFFIX, named_instants
from lakehouse_engine.services.metadata.compaction import MetadataCompaction
from lakehouse_engine.services.metadata.upkeep import run_due
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_metadata_upkeep import TABLES, Kept
from tests.support.fixtures import fixtures_root, unpack_spark_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

AT_ONCE = ServiceOptions(metadata_table=MetadataTableOptions(delta_commits=1))
WRITTEN_ON = ["v6-0.15.0/cow_metadata", "v6-0.15.0/mor_metadata", "v9-1.2.0/cow_metadata", "v9-1.2.0/mor_metadata", "v8-1.2.0/mor_metadata"]
FEW = {
    "hoodie.metadata.compact.max.delta.commits": 4,
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 6,
}


@pytest.fixture(autouse=True)
def _later_than_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are newer than the clock of some machines."""
    monkeypatch.setattr(clock, "_TOLERANCE", clock.timedelta(days=100_000))


def opened(folder: Path) -> MetadataTable:
    return MetadataTable.open(TableState.load(LocalStorage(str(folder))))


def records(table: MetadataTable) -> dict[str, dict[bytes, Any]]:
    """Every record of each partition, decoded."""
    return {
        partition: {
            key: payload
            for found in table.records(partition)
            for key, payload in zip(found.keys.to_pylist(), found.payloads.to_pylist(), strict=True)
        }
        for partition in table.partitions
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_compacted_metadata_table_has_the_same_records(name: str, tmp_path: Path) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    before = opened(folder)
    expected = records(before)
    run_due(before.data, AT_ONCE, LocalRunner(2), lock_timeout_ms=1000)
    after = opened(folder)
    assert after.partitions == before.partitions
    assert records(after) == expected
    pieces = [piece for partition in after.partitions for piece in after.groups(partition)]
    assert not any(piece.log_files for piece in pieces)
    assert {piece.group for piece in pieces} == {piece.group for partition in before.partitions for piece in before.groups(partition)}
    for piece in pieces:
        assert piece.base_file is not None
        reader = open_hfile(InMemory((folder / METADATA_TABLE / piece.base_file.path).read_bytes()))
        assert b"schema" in reader.info
        assert len(reader) == len(reader.read_all())


@pytest.mark.parametrize("name", WRITTEN_ON)
def test_writes_keep_a_metadata_table_short_and_right(name: str, tmp_path: Path) -> None:
    one = Kept(name, tmp_path)
    one.table = HoodieTable.open(str(one.path), options=FEW)
    for number in range(18):
        assert one.table.upsert(one.fresh(2, f"n{number}_")).failed_services == ()
        one.check()
    metadata = opened(one.path).state
    actions = {one.action for one in metadata.timeline.completed()}
    assert {Action.COMMIT, Action.CLEAN} <= actions
    assert metadata.has_archive
    assert len(metadata.timeline.completed()) < 45
    assert one.state.has_archive
    if not name.startswith("v6"):
        rows = one.rows()
        assert_same_rows(read_with_hudi_rs(one.path).select(rows.column_names), rows)


@pytest.mark.parametrize("name", WRITTEN_ON)
def test_what_is_written_after_a_plan_is_not_in_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Kept(name, tmp_path)
    metadata = opened(one.path).state
    with named_instants(one.state, metadata, COMPACTION_SUFFIX):
        scheduled = scheduling.schedule(MetadataCompaction(one.state), metadata.storage, lock_timeout_ms=1000, alone_ms=0)
    assert scheduled is not None
    requested, plan = scheduled
    one.check()
    with monkeypatch.context() as patch:
        patch.setattr(inline, "run_due", lambda *args, **options: None)
        for number in range(2):
            one.table.upsert(one.fresh(2, f"n{number}_"))
            one.check()
    assert one.table.upsert(one.fresh(1, "last")).failed_services == ()
    one.check()
    done = opened(one.path).state
    assert done.active.plan(HoodieCompactionPlan, requested) == plan
    assert requested.requested_time in {one.requested_time for one in done.timeline.completed()}
    assert any(piece.log_files for piece in done.view.latest_slices("files"))


@pytest.mark.parametrize("name", ["v6-0.15.0/cow_metadata", "v9-1.2.0/cow_metadata"])
def test_the_table_is_archived_up_to_what_the_metadata_table_has_merged(name: str, tmp_path: Path) -> None:
    one = Kept(name, tmp_path)
    seldom = {**FEW, "hoodie.metadata.compact.max.delta.commits": 1000}
    one.table = HoodieTable.open(str(one.path), options=seldom)
    for number in range(12):
        assert one.table.upsert(one.fresh(2, f"n{number}_")).failed_services == ()
    logged = {instant.requested_time for instant in unmerged(opened(one.path).state)}
    assert len(logged) > 12
    active = {instant.requested_time for instant in one.state.timeline.completed()}
    assert logged <= active
    one.table = HoodieTable.open(str(one.path), options=FEW)
    assert one.table.upsert(one.fresh(2, "last")).failed_services == ()
    assert len(one.state.timeline.completed().writes()) <= 6
    one.check()
