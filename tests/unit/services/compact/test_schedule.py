from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import CommitConflictError, CompactionError, MissingFileError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import (
    HoodieClusteringGroup,
    HoodieClusteringPlan,
    HoodieRequestedReplaceMetadata,
    HoodieSliceInfo,
)
from lakehouse_engine.services.compact.plan import operation_of, plan_compaction, read_plan
from lakehouse_engine.timeline.clock import InstantClock
from tests.unit.read.hand_made import PARTITION, HandMadeTable
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block
from tests.unit.services.compact.tables import ROWS, T1, T3, T4, files, rows, schedule_now, table_with_logs

MEGABYTE = 1024 * 1024


def test_a_plan_names_the_slices_with_logs_by_their_bare_files(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    result = schedule_now(table)
    assert result.instant is not None
    assert result.instant > T3
    assert (result.state, result.operation, result.dry_run) == ("requested", "COMPACT", False)
    plan = read_plan(table.state(), result.instant, Action.COMPACTION)
    assert plan.operations == result.operations
    assert (plan.version, plan.strategy, plan.extra_metadata, plan.preserve_hoodie_metadata) == (2, None, None, False)
    (operation,) = result.operations
    assert (operation.file_id, operation.partition_path, operation.base_instant_time) == ("a-0", PARTITION, T1)
    assert operation.data_file_path == table.versions["a"].name
    assert operation.delta_file_paths == (f".a-0_{T1}.log.1_0-1-0", f".a-0_{T1}.log.2_0-2-0")
    assert rows(table) == ROWS


def test_metrics_are_whole_megabytes_as_hudi_counts_them() -> None:
    group = FileGroupId("p", "a-0")
    logs = (LogFile("p", "a-0", T1, 1, size=3 * MEGABYTE - 1), LogFile("p", "a-0", T1, 2, size=2))
    base = BaseFile("p", "a-0", "0-0-0", T1, size=10 * MEGABYTE + 5)
    expected = {"TOTAL_LOG_FILES": 2.0, "TOTAL_LOG_FILES_SIZE": 3.0 * MEGABYTE + 1}
    read, write = {"TOTAL_IO_READ_MB": 13.0}, {"TOTAL_IO_WRITE_MB": 10.0}
    assert operation_of(FileSlice(group, T1, base, logs)).metrics == {**expected, **read, **write, "TOTAL_IO_MB": 23.0}
    without = operation_of(FileSlice(group, T1, None, logs))
    assert without.data_file_path is None
    # What is not there yet is taken to become a full file.
    assert without.metrics == {**expected, "TOTAL_IO_READ_MB": 3.0, "TOTAL_IO_WRITE_MB": 120.0, "TOTAL_IO_MB": 123.0}


def test_a_group_is_in_one_plan_at_a_time(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    first = schedule_now(table).instant
    assert first is not None
    assert schedule_now(table).instant is None
    time = InstantClock().next(table.state().timeline)
    table.append(time, T1, 1, data_block(time, {"k8": 80}), group="b")
    second = schedule_now(table)
    assert second.instant is not None
    assert second.instant > first
    assert [operation.file_id for operation in second.operations] == ["b-0"]


def test_nothing_is_scheduled_where_no_slice_has_logs(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path)
    table.write(T1, {"a": {"k": (T1, 1)}})
    before = files(table)
    result = schedule_now(table)
    assert (result.instant, result.state, result.operations) == (None, "none", ())
    assert files(table) == before


def test_groups_under_a_pending_clustering_are_left_out(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    piece = HoodieSliceInfo(file_id="a-0", partition_path=PARTITION)
    plan = HoodieClusteringPlan(input_groups=(HoodieClusteringGroup(slices=(piece,)),))
    table.timeline_file(f"{T4}.replacecommit.requested", encode_plan(HoodieRequestedReplaceMetadata(clustering_plan=plan)))
    assert schedule_now(table).instant is None


def test_a_dry_run_plans_and_changes_nothing(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    before = files(table)
    result = schedule_now(table, dry_run=True)
    assert (result.instant, result.state, result.dry_run) == (None, "planned", True)
    assert [operation.file_id for operation in result.operations] == ["a-0"]
    assert files(table) == before


def test_a_copy_on_write_table_is_refused(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path)
    table.write(T1, {"a": {"k": (T1, 1)}})
    with pytest.raises(CompactionError, match="only merge-on-read"):
        schedule_now(table)  # type: ignore[arg-type]


def test_a_table_that_lost_a_file_is_refused_before_anything_changes(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    table.remove(table.versions["b"])
    before = files(table)
    with pytest.raises(MissingFileError, match="b-0"):
        schedule_now(table)
    assert files(table) == before


def test_a_write_that_is_going_on_keeps_compactions_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without the lock requests its write between the recovery and the plan."""
    table = table_with_logs(tmp_path)

    def and_a_write(*arguments: object, **more: object) -> object:
        table.timeline_file(f"{T4}.deltacommit.requested", b"")
        return plan_compaction(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("lakehouse_engine.services.compact.compaction.plan_compaction", and_a_write)
    with pytest.raises(CompactionError, match="while a write is going on") as raised:
        schedule_now(table)
    assert raised.value.context["instant"].startswith(T4)
    assert not [instant for instant in table.state().timeline if instant.action is Action.COMPACTION]


def test_a_write_with_a_live_heartbeat_keeps_compactions_away(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    table.timeline_file(f"{T4}.deltacommit.requested", b"")
    (tmp_path / ".hoodie" / ".heartbeat").mkdir(exist_ok=True)
    table.timeline_file(f".heartbeat/{T4}", b"")
    with pytest.raises(CommitConflictError):
        schedule_now(table)


def test_the_state_on_the_timeline_is_requested_only(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    schedule_now(table)
    (pending,) = table.state().timeline.pending()
    assert (pending.action, pending.state) == (Action.COMPACTION, State.REQUESTED)
