"""Plans that do not fit the table any more when they are run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse_engine.errors import CompactionError, IllegalTransitionError, MissingFileError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.services.compact.plan import read_plan
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from tests.unit.read.hand_made import PARTITION
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block
from tests.unit.services.compact.tables import ROWS, T1, rows, run_now, schedule_now, table_with_logs


def scheduled(table: HandMadeLogTable) -> str:
    time = schedule_now(table).instant
    assert time is not None
    return time


def put_plan(table: HandMadeLogTable, time: str, plan: HoodieCompactionPlan) -> None:
    table.timeline_file(f"{time}.compaction.requested", encode_plan(plan))


def plan_of(table: HandMadeLogTable, time: str) -> HoodieCompactionPlan:
    return read_plan(table.state(), time, Action.COMPACTION)


def test_a_plan_of_version_1_with_full_paths_is_carried_out(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    planned = plan_of(table, time)
    (operation,) = planned.operations or ()
    prefix = f"file:/tmp/elsewhere/{PARTITION}/"
    full = replace(
        operation,
        data_file_path=f"{prefix}{operation.data_file_path}",
        delta_file_paths=tuple(prefix + name for name in operation.delta_file_paths or ()),
    )
    put_plan(table, time, replace(planned, version=1, operations=(full,)))
    run_now(table)
    assert rows(table, read_optimized=True) == ROWS
    assert plan_of(table, time) == planned


def test_logs_that_a_writer_without_the_lock_added_to_the_old_slice_are_compacted_too(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    late = InstantClock().next(table.state().timeline)
    table.append(late, T1, 3, data_block(late, {"k9": 9}))
    (before,) = plan_of(table, time).operations or ()
    expected = rows(table)
    run_now(table)
    (after,) = plan_of(table, time).operations or ()
    assert len(after.delta_file_paths or ()) == len(before.delta_file_paths or ()) + 1
    # Its commit is younger than the compaction, and its row would be lost with the old slice.
    assert set(rows(table)) == set(expected) == {*ROWS, "k9"}


def test_a_log_that_comes_to_the_old_slice_while_it_is_compacted_stops_the_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    late = InstantClock().next(table.state().timeline)

    def meanwhile(task: CompactTask) -> HoodieWriteStat:
        table.append(late, T1, 3, data_block(late, {"k9": 9}))
        return compact_slice(task)

    monkeypatch.setattr("lakehouse_engine.services.compact.compaction.compact_slice", meanwhile)
    with pytest.raises(CompactionError, match="run it again"):
        run_now(table)
    monkeypatch.undo()
    assert rows(table) == {**ROWS, "k9": (late, 9)}
    assert run_now(table).instant == time
    assert rows(table, read_optimized=True) == {**ROWS, "k9": (late, 9)}


def test_a_plan_that_names_files_which_are_gone_is_made_anew(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    planned = plan_of(table, time)
    (operation,) = planned.operations or ()
    gone = replace(operation, delta_file_paths=(*(operation.delta_file_paths or ()), f".a-0_{T1}.log.7_0-7-0"))
    put_plan(table, time, replace(planned, operations=(gone,)))
    later = InstantClock().next(table.state().timeline)
    table.append(later, time, 1, data_block(later, {"k4": 4}))
    run_now(table)
    assert rows(table) == {**ROWS, "k4": (later, 4)}
    assert plan_of(table, time) == planned


def test_a_lost_base_file_is_an_error_and_the_plan_stays(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    table.remove(table.versions["a"])
    with pytest.raises(MissingFileError, match="a-0"):
        run_now(table)
    with pytest.raises(MissingFileError, match="a-0"):
        rows(table)
    (pending,) = table.state().timeline.pending()
    assert (pending.requested_time, pending.state) == (time, State.REQUESTED)


def test_a_group_that_was_never_there_is_an_error(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    unknown = HoodieCompactionOperation(base_instant_time=T1, file_id="z-0", partition_path=PARTITION, data_file_path="z-0_0-0-0_1.parquet")
    put_plan(table, time, HoodieCompactionPlan(operations=(unknown,)))
    with pytest.raises(MissingFileError, match="a pending compaction needs it"):
        run_now(table)


def test_groups_replaced_since_are_compacted_for_time_travel_or_dropped_with_their_files(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    logged = InstantClock().next(table.state().timeline)
    table.append(logged, time, 1, delete_block(logged, ["k3"]))
    before = rows(table)
    replaced = InstantClock().next(table.state().timeline)
    table.write(replaced, {"c": {"k1": (replaced, 100)}}, replaces=("a", "b"))
    run_now(table)
    assert rows(table) == {"k1": (replaced, 100)}
    assert rows(table, logged) == before


def test_a_group_replaced_and_cleaned_is_dropped_from_the_plan(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    replaced = InstantClock().next(table.state().timeline)
    table.write(replaced, {"c": {"k1": (replaced, 100)}}, replaces=("a", "b"))
    for file in tmp_path.glob(f"{PARTITION}/*a-0*"):
        file.unlink()
    result = run_now(table)
    assert (result.instant, result.files_created) == (time, 0)
    assert rows(table) == {"k1": (replaced, 100)}


def test_a_plan_is_not_replaced_while_it_is_carried_out(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    state = table.state()
    timeline, requested = ActiveTimeline(state.storage, state.format), Instant(time, Action.COMPACTION, State.REQUESTED)
    timeline.to_inflight(requested)
    with pytest.raises(IllegalTransitionError, match="is being carried out"):
        timeline.replace_plan(requested, b"")
