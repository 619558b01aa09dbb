"""A clustering from its plan to its commit, and what becomes of the table, for tables of both kinds and of versions 6 and 9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lakehouse_engine.errors import ClusteringError, OptionError
from lakehouse_engine.files.base_file import read_base_file
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental
from lakehouse_engine.services.cluster import run, schedule
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.verify import verify
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, MOR, SCHEMA, content, data_files, new_table, rows
from tests.unit.services.versions import version

__all__ = ["version"]

SMALL = {"hoodie.parquet.small.file.limit": 0}
HELD = {1: 50, 2: 40, 3: 30, 4: 20, 5: 10}


@pytest.fixture(params=[COW, MOR])
def table(request: pytest.FixtureRequest) -> LocalTable:
    """Two files in partition a, of which one is updated, and one in b."""
    return filled(new_table(request.param, SMALL))


def filled(table: LocalTable) -> LocalTable:
    table.insert(rows({1: 0, 2: 40}))
    table.insert(rows({3: 30, 4: 20}))
    table.insert(rows({5: 10}, "b"))
    table.upsert(rows({1: 50}))
    return table


def groups(table: LocalTable) -> set[tuple[str, str]]:
    return {(one.partition_path, one.file_id) for one in table.state.view.latest_slices()}


def stored(table: LocalTable, part: str = "part=a") -> list[list[int]]:
    """The values of n in each file of a partition, in their order."""
    state = table.state
    bases = [one.base_file for one in state.view.latest_slices(part) if one.base_file is not None]
    return [read_base_file(state.storage, base, None).column("n").to_pylist() for base in bases]


def test_files_become_one_with_sorted_rows_that_keep_their_stamps(table: LocalTable) -> None:
    before = table.read(["id", "n"], meta_columns=True).sort_by("id")
    old = groups(table)
    result = table.cluster("n")
    assert (result.state, len(result.groups), result.files_replaced, result.files_created, result.rows_written) == ("completed", 2, 3, 2, 5)
    assert stored(table) == [[20, 30, 40, 50]]
    assert content(table) == HELD
    assert not old & groups(table)
    after = table.read(["id", "n"], meta_columns=True).sort_by("id")
    for column in ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"):
        assert after[column].to_pylist() == before[column].to_pylist()
    assert set(after["_hoodie_file_name"].to_pylist()) == {one.base_file.name for one in table.state.view.latest_slices() if one.base_file}
    assert verify(table.state).ok
    assert not table.storage.walk(f".hoodie/.temp/{result.instant}")


def test_the_record_of_the_commit_is_as_hudis(table: LocalTable) -> None:
    old = groups(table)
    result = table.cluster("n")
    assert result.instant is not None
    state = table.state
    instant = state.timeline.find(result.instant)
    assert instant is not None
    assert str(instant.action) == "replacecommit"
    metadata = state.commit_metadata(instant)
    replaced = metadata.partition_to_replace_file_ids or {}
    assert {(path, one) for path, ids in replaced.items() for one in ids} == old
    assert metadata.operation_type == "CLUSTER"
    assert not metadata.compacted
    stats = list(metadata.write_stats())
    assert {stat.prev_commit for stat in stats} == {"null"}
    assert [stat.num_writes for stat in stats] == [stat.num_inserts for stat in stats]
    requested = Instant(result.instant, state.format.clustering_action, State.REQUESTED)
    name = state.format.file_name(requested)
    assert name.endswith("replacecommit.requested" if table.state.config.version is TableVersion.SIX else "clustering.requested")
    inflight = state.storage.read(f"{state.format.timeline_folder}/{state.format.file_name(requested.at(State.INFLIGHT))}")
    assert inflight == b""


def test_the_index_finds_every_key_afterwards(table: LocalTable) -> None:
    table.cluster("n")
    (base,) = [one.base_file for one in table.state.view.latest_slices("part=a")]
    assert base is not None
    footer = read_footer(table.storage, base)
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert (footer.min_key, footer.max_key, footer.sorted_by) == ("1", "4", "linear:n")
    table.upsert(rows({2: 41, 9: 90}))
    table.delete(rows({3: 0}))
    assert content(table) == {1: 50, 2: 41, 4: 20, 5: 10, 9: 90}
    assert verify(table.state).ok


def test_what_is_in_order_and_unchanged_is_not_planned_again(table: LocalTable) -> None:
    table.cluster("n")
    before = groups(table)
    assert table.cluster("n").state == "none"
    table.upsert(rows({5: 11}, "b"))
    result = table.cluster("n")
    assert [one.partition_path for group in result.groups for one in group.slices or ()] == ["part=b"]
    assert {one for one in groups(table) if one[0] == "part=a"} == {one for one in before if one[0] == "part=a"}
    assert table.cluster("id").files_replaced == 2
    assert stored(table) == [[50, 40, 30, 20]]


def test_order_is_known_when_the_clustering_is_archived(table: LocalTable) -> None:
    clustered = table.cluster("n").instant
    for number in range(6):
        table.insert(rows({50 + number: number}, "c"))
    table.clean(1)
    table.archive(2, 3)
    assert clustered not in table.instants()
    planned = table.schedule_clustering("n")
    assert {one.partition_path for group in planned.groups for one in group.slices or ()} == {"part=c"}


def test_without_columns_files_are_put_together_and_rows_stay_in_their_order(table: LocalTable) -> None:
    result = table.cluster()
    assert [one.partition_path for group in result.groups for one in group.slices or ()] == ["part=a", "part=a"]
    assert sorted(stored(table)[0]) == [20, 30, 40, 50]
    assert table.cluster().state == "none"


def test_outputs_are_of_the_target_size(table: LocalTable) -> None:
    size = sum(one.size for one in table.state.view.latest_slices("part=a"))
    result = table.cluster("n", target_file_bytes=size // 2 + 1)
    assert (result.files_created, sorted(stored(table))) == (3, [[20, 30], [40, 50]])
    assert verify(table.state).ok


def test_groups_beyond_the_bound_are_told_of_and_taken_by_the_next(table: LocalTable) -> None:
    first = table.cluster("n", groups=1)
    assert (first.files_replaced, first.groups_left) == (2, 1)
    second = table.cluster("n", groups=1)
    assert (second.files_replaced, second.groups_left) == (1, 0)
    assert table.cluster("n", groups=1).state == "none"


def test_rows_above_the_limit_wait_in_files(table: LocalTable) -> None:
    assert table.schedule_clustering("n").state == "requested"
    result = _run_with_memory(table, 1)
    assert (result, stored(table), content(table)) == ("completed", [[20, 30, 40, 50]], HELD)
    assert not [entry.path for entry in table.storage.walk() if ".spill" in entry.path]


def _run_with_memory(table: LocalTable, limit: int) -> str:
    options = table._clustering((), {"memory_bytes": limit})
    return run(table.storage, options, table._write_options(), table.runner, lock_timeout_ms=1000).state


def test_a_slice_whose_rows_are_all_deleted_leaves_no_file() -> None:
    table = new_table(MOR, SMALL)
    table.insert(rows({1: 1}, "b"))
    table.delete(rows({1: 1}, "b"))
    result = table.cluster("n")
    assert (result.state, result.files_replaced, result.files_created) == ("completed", 1, 0)
    assert content(table) == {}
    table.insert(rows({1: 2}, "b"))
    assert content(table) == {1: 2}
    assert verify(table.state).ok


def test_incremental_reads_see_a_clustering_as_no_change(table: LocalTable) -> None:
    begin = table.state.order.moment(table.instants()[1])
    table.cluster("n")
    table.upsert(rows({4: 21}))
    state = table.state
    changed = read_arrow(plan_incremental(state, begin), columns=["id"])
    assert sorted(changed["id"].to_pylist()) == [1, 4, 5]


def test_the_table_before_can_be_read_and_restored(table: LocalTable) -> None:
    before = table.instants()[-1]
    table.savepoint(before, "sp")
    table.cluster("n")
    table.upsert(rows({2: 99}))
    assert content(table, as_of=before) == HELD
    table.clean(1)
    table.restore("sp")
    assert content(table) == HELD
    assert verify(table.state).ok
    table.upsert(rows({3: 31}))
    assert content(table) == {**HELD, 3: 31}


def test_it_is_rolled_back_and_the_old_files_are_there_again(table: LocalTable) -> None:
    old = groups(table)
    result = table.cluster("n")
    table.rollback(result.instant)
    assert (groups(table), content(table)) == (old, HELD)
    assert verify(table.state).ok


def test_a_plan_is_rolled_back(table: LocalTable) -> None:
    planned = table.schedule_clustering("n")
    table.rollback(planned.instant)
    assert list(table.state.timeline.pending()) == []
    assert table.run_clustering().state == "none"


def test_replaced_files_are_cleaned_once_nothing_reads_them(table: LocalTable) -> None:
    old = data_files(table)
    table.cluster("n")
    for number in range(3):
        table.insert(rows({50 + number: number}, "c"))
    table.clean(1)
    assert not old & data_files(table)
    assert content(table) == {**HELD, 50: 0, 51: 1, 52: 2}
    assert verify(table.state).ok


def test_a_clean_keeps_what_a_plan_is_going_to_read(table: LocalTable) -> None:
    planned = table.schedule_clustering("n")
    for number in range(3):
        table.insert(rows({50 + number: number}, "c"))
    table.clean(1)
    table.archive(2, 3)
    assert table.run_clustering(planned.instant).state == "completed"
    assert content(table) == {**HELD, 50: 0, 51: 1, 52: 2}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sort_columns": ("nope",)}, "rows cannot be ordered by 'nope'"),
        ({"sort_columns": ("n", "N")}, "twice"),
    ],
)
def test_columns_that_there_are_not_are_refused(table: LocalTable, given: Mapping[str, Any], says: str) -> None:
    before = {entry.path for entry in table.storage.walk() if ".locks" not in entry.path}
    with pytest.raises(OptionError, match=says):
        table.cluster(**given)
    assert {entry.path for entry in table.storage.walk() if ".locks" not in entry.path} == before


def test_a_partition_that_there_is_not_is_refused(table: LocalTable) -> None:
    with pytest.raises(ClusteringError, match="the table has no partition 'part=z' to cluster"):
        schedule(table.storage, table._clustering((), {}), table._write_options(), lock_timeout_ms=1000, only=["part=z"])


def test_groups_of_a_pending_service_are_left_out() -> None:
    table = filled(new_table(MOR, SMALL))
    assert table.schedule_compaction().instant is not None
    planned = table.schedule_clustering("n")
    assert sum(len(group.slices or ()) for group in planned.groups) == 2
    assert table.schedule_clustering("n").state == "none"
    table.run_compaction()
    table.run_clustering()
    assert content(table) == HELD
    assert verify(table.state).ok


def test_buckets_stay_buckets(version: TableVersion) -> None:
    storage, options = MemoryStorage(), {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    spec = TableSpec(name="t", schema=SCHEMA, record_key=["id"], partition_by=["part"], properties=options, version=version)
    create_table(storage, spec)
    table = LocalTable(storage)
    table.insert(rows({number: 20 - number for number in range(10)}))
    buckets = {one.file_id[:8] for one in table.state.view.latest_slices()}
    result = table.cluster("n")
    assert (result.files_replaced, result.files_created) == (2, 2)
    assert {one.file_id[:8] for one in table.state.view.latest_slices()} == buckets
    assert all(part == sorted(part) for part in stored(table))
    table.upsert(rows({3: 99}))
    assert content(table) == {**{number: 20 - number for number in range(10)}, 3: 99}
