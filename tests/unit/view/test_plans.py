"""Pending clusterings: a `replacecommit` of version 6, a `clustering` of versions 8 and 9."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.commit.concurrency.pending import pending_groups
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieClusteringGroup, HoodieClusteringPlan, HoodieRequestedReplaceMetadata, HoodieSliceInfo
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.repair.pending import pending
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.undo.rollback import is_service_plan
from lakehouse_engine.view.history import history
from lakehouse_engine.view.plans import clustering_groups, is_plan
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import spark_fixtures, unpack_spark_fixture
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import content, new_table, rows, updated
from tests.unit.services.versions import version

__all__ = ["version"]

LATER = "29990101000000000"


def clustered(action: Action) -> tuple[LocalTable, Instant]:
    """A table with two groups of which a clustering that is planned has one, and that plan."""
    table = new_table()
    updated(table, 1)
    table.insert(rows({5: 0}, part="b"))
    (piece,) = table.state.view.latest_slices("part=a")
    info = HoodieSliceInfo(file_id=piece.file_id, partition_path="part=a")
    plan = HoodieRequestedReplaceMetadata(clustering_plan=HoodieClusteringPlan(input_groups=(HoodieClusteringGroup(slices=(info,)),)))
    instant = Instant(InstantClock().next(table.state.timeline), action, State.REQUESTED)
    table.state.active.create_requested(instant, encode_plan(plan))
    return table, instant


def test_a_plan_that_is_gone_meanwhile_is_none(version: TableVersion) -> None:
    table, instant = clustered(Action.REPLACE_COMMIT if version is TableVersion.SIX else Action.CLUSTERING)
    state = table.state
    state.active.delete(instant)
    assert not is_plan(state, instant)


def test_the_groups_of_a_pending_clustering_are_known_and_not_changed(version: TableVersion) -> None:
    table, instant = clustered(Action.REPLACE_COMMIT if version is TableVersion.SIX else Action.CLUSTERING)
    state = table.state
    assert state.timeline.pending().instants == (instant,)
    assert is_plan(state, instant)
    assert is_service_plan(state, instant)
    assert [partition for partition, _ in clustering_groups(state, instant)] == ["part=a"]
    assert set(pending_groups(state).values()) == {instant.requested_time}
    assert "`cluster --op run` runs it" in pending(state, instant, None).message
    with pytest.raises(CommitConflictError, match="a pending clustering plans to rewrite this file group"):
        LocalTable(table.storage, {"hoodie.clustering.updates.strategy": "SparkRejectUpdateStrategy"}).upsert(rows({1: 9}))
    table.upsert(rows({5: 9}, part="b"))
    assert content(table) == {1: 1, 2: 0, 5: 9}
    assert table.state.timeline.pending().instants == (instant,)


@pytest.mark.parametrize("version", [TableVersion.NINE], indirect=True)
def test_a_replace_commit_of_a_later_version_without_a_plan_is_a_write(version: TableVersion) -> None:
    table, instant = clustered(Action.CLUSTERING)
    write = Instant(LATER, Action.REPLACE_COMMIT, State.REQUESTED)
    table.state.active.create_requested(write, encode_plan(HoodieRequestedReplaceMetadata()))
    assert not is_plan(table.state, write)
    assert "archiving stops here" in str(next(entry.note for entry in history(table.state) if entry.instant == instant.requested_time))


@pytest.mark.parametrize("version", [TableVersion.NINE], indirect=True)
@pytest.mark.parametrize("name", [name for name in spark_fixtures(("v8-1.2.0", "v9-1.2.0")) if name.endswith("_clustering")])
def test_a_clustering_of_hudi_that_is_not_completed_is_a_plan(name: str, tmp_path: Path) -> None:
    table = unpack_spark_fixture(name, tmp_path)
    timeline = table / ".hoodie" / "timeline"
    (requested,) = timeline.glob("*.clustering.requested")
    time = requested.name.partition(".")[0]
    completed = TableState.load(LocalStorage(str(table)))
    done = next(one for one in completed.timeline if one.requested_time == time)
    groups = clustering_groups(completed, done)
    replaced = completed.commit_metadata(done).partition_to_replace_file_ids or {}
    assert set(groups) == {(partition, file) for partition, files in replaced.items() for file in files}
    for file in filter(Path.is_file, timeline.iterdir()):
        if file.name.partition(".")[0].partition("_")[0] > time or file.name.endswith(".replacecommit"):
            file.unlink()
    state = TableState.load(LocalStorage(str(table)))
    (planned,) = state.timeline.pending().instants
    assert (planned.action, planned.state) == (Action.CLUSTERING, State.INFLIGHT)
    assert is_plan(state, planned)
    assert set(pending_groups(state)) == set(groups)
