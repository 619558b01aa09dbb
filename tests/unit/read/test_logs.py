"""Slices with logs: what counts, what is merged, and what is missing."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import MissingFileError, UnsupportedTableError
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block, render_rollback
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import ScanPlan, plan_incremental, plan_snapshot
from tests.unit.read.hand_made import PARTITION, instant
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block, header

T1, T2, T3, T4, T5 = (instant(number) for number in range(1, 6))
BASE = {"k1": 1, "k2": 2}


def ids(plan: ScanPlan) -> dict[str, int]:
    table = read_arrow(plan)
    found = dict(zip(table.column("id").to_pylist(), table.column("n").to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


@pytest.fixture
def table(tmp_path: Path) -> HandMadeLogTable:
    """One group, k1 and k2 of T1."""
    made = HandMadeLogTable(tmp_path)
    made.write(T1, {"a": {key: (T1, n) for key, n in BASE.items()}})
    return made


@pytest.mark.parametrize("parquet", [False, True])
def test_updates_inserts_and_deletions_of_logs_are_merged(table: HandMadeLogTable, parquet: bool) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 5, "k3": 3}, parquet=parquet))
    table.append(T3, T1, 2, delete_block(T3, ["k2"]))
    state = table.state()
    assert ids(plan_snapshot(state)) == {"k1": 5, "k3": 3}
    assert ids(plan_snapshot(state, T2)) == {"k1": 5, "k2": 2, "k3": 3}
    assert ids(plan_snapshot(state, T1)) == BASE
    assert ids(plan_snapshot(state, read_optimized=True)) == BASE
    assert ids(plan_incremental(state, T1, T2)) == {"k1": 5, "k3": 3}
    assert ids(plan_incremental(state, T2)) == {}
    assert ids(plan_incremental(state, None)) == {"k1": 5, "k3": 3}


def test_a_plan_with_logs_can_be_sent_to_another_process_and_read_in_threads(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.append(T3, T3, 1, data_block(T3, {"k9": 9}), group="b")
    plan = plan_snapshot(table.state())
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert read_arrow(plan, runner=LocalRunner(2)).equals(read_arrow(plan))
    assert plan.size > sum(piece.slice.base_file.size for piece in plan.logged if piece.slice.base_file)


def test_a_group_of_logs_only_is_read(table: HandMadeLogTable) -> None:
    table.append(T2, T2, 1, data_block(T2, {"k7": 7}), group="b")
    state = table.state()
    assert ids(plan_snapshot(state)) == {**BASE, "k7": 7}
    assert ids(plan_snapshot(state, read_optimized=True)) == BASE
    assert ids(plan_snapshot(state, T1)) == BASE


def test_between_logs_the_higher_ordering_value_stays_and_the_last_of_equals(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 14}))
    table.append(T3, T1, 2, data_block(T3, {"k1": 13}))
    table.append(T4, T1, 3, delete_block(T4, ["k1"], [13]))
    assert ids(plan_snapshot(table.state())) == {"k1": 14, "k2": 2}
    table.append(T5, T1, 4, delete_block(T5, ["k1"], [14]))
    assert ids(plan_snapshot(table.state())) == {"k2": 2}


def test_a_deletion_without_ordering_value_always_applies_and_what_follows_replaces_it(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 14}) + delete_block(T2, ["k1"]))
    assert ids(plan_snapshot(table.state())) == {"k2": 2}
    table.append(T3, T1, 2, data_block(T3, {"k1": 2}))
    assert ids(plan_snapshot(table.state())) == {"k1": 2, "k2": 2}


def test_tables_that_merge_by_commit_time_do_not_ask_for_ordering_values(tmp_path: Path) -> None:
    strategy = {"hoodie.record.merge.strategy.id": "ce9acb64-bde0-424c-9b91-f6ebba25356d"}
    payload = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}
    made = HandMadeLogTable(tmp_path, strategy | payload)
    made.write(T1, {"a": {"k1": (T1, 20)}})
    made.append(T2, T1, 1, data_block(T2, {"k1": 14}))
    made.append(T3, T1, 2, data_block(T3, {"k1": 1}))
    assert ids(plan_snapshot(made.state())) == {"k1": 1}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("org.apache.hudi.common.model.DefaultHoodieRecordPayload", {"k2": -2, "k6": 6}),
        ("org.apache.hudi.common.model.OverwriteWithLatestAvroPayload", {"k1": -1, "k2": -2, "k5": -1, "k6": 6}),
    ],
)
def test_the_marker_of_a_deletion_counts_with_the_default_payload_only(tmp_path: Path, payload: str, expected: dict[str, int]) -> None:
    marker = {"hoodie.payload.delete.field": "n", "hoodie.payload.delete.marker": "-1"}
    made = HandMadeLogTable(tmp_path, {**marker, "hoodie.compaction.payload.class": payload})
    made.write(T1, {"a": {key: (T1, -n) for key, n in BASE.items()}})
    made.append(T2, T1, 1, data_block(T2, {"k1": -1, "k5": -1, "k6": 6}))
    assert ids(plan_snapshot(made.state())) == expected


def test_blocks_of_writes_that_did_not_complete_do_not_count(table: HandMadeLogTable) -> None:
    table.log(T1, 1, data_block(T2, {"k1": 99}))
    table.timeline_file(f"{T2}.deltacommit.inflight", b"")
    table.append(T3, T1, 2, data_block(T3, {"k2": 5}))
    assert ids(plan_snapshot(table.state())) == {"k1": 1, "k2": 5}


def test_a_rollback_block_takes_back_blocks_that_count_as_archived(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 99}))
    table.append(T4, T1, 3, data_block(T4, {"k2": 5}))
    table.archive(T1)
    table.archive(T2)
    assert ids(plan_snapshot(table.state())) == {"k1": 99, "k2": 5}
    table.log(T1, 2, render_rollback(T3, T2))
    assert ids(plan_snapshot(table.state())) == {"k1": 1, "k2": 5}


@pytest.mark.parametrize("target", [T2, T4, "20990101000000000", "20200101000000000"])
def test_a_rollback_block_of_a_completed_later_or_unknown_write_takes_nothing_back(table: HandMadeLogTable, target: str) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 99}))
    table.log(T1, 2, render_rollback(T3, target))
    table.append(T4, T1, 3, data_block(T4, {"k2": 5}))
    assert ids(plan_snapshot(table.state())) == {"k1": 99, "k2": 5}


def test_blocks_that_a_log_compaction_merged_count_once(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 50}))
    table.append(T3, T1, 2, data_block(T3, {"k2": 60}))
    merged = {**header(T4), HeaderKey.COMPACTED_BLOCK_TIMES: f"{T3},{T2}"}
    blocks = read_blocks(data_block(T4, {"k1": 7}) + delete_block(T4, ["k2"]))
    table.append(T4, T1, 3, b"".join(render_block(block.type, merged, block.content) for block in blocks))
    assert ids(plan_snapshot(table.state())) == {"k1": 7}
    assert ids(plan_snapshot(table.state(), T3)) == {"k1": 50, "k2": 60}


@pytest.mark.parametrize("kind", [BlockType.HFILE_DATA, BlockType.CDC_DATA])
def test_blocks_of_other_kinds_are_refused_by_name(table: HandMadeLogTable, kind: BlockType) -> None:
    table.append(T2, T1, 1, render_block(kind, header(T2), b"whatever"))
    with pytest.raises(UnsupportedTableError, match=kind.name):
        read_arrow(plan_snapshot(table.state()))


def test_a_missing_log_is_an_error_that_names_its_write(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.append(T3, T1, 2, data_block(T3, {"k1": 6}))
    (table.folder / log.path).unlink()
    for as_of in (None, T2):  # No clean took it: the newest snapshot needs it too.
        with pytest.raises(MissingFileError, match=r"the log file .*\.log\.1") as caught:
            plan_snapshot(table.state(), as_of)
        assert caught.value.context["instant"] == T2
    assert ids(plan_snapshot(table.state(), T1)) == BASE
    assert ids(plan_snapshot(table.state(), read_optimized=True)) == BASE


def test_a_group_whose_only_log_is_gone_is_an_error(table: HandMadeLogTable) -> None:
    log = table.append(T2, T2, 1, data_block(T2, {"k7": 7}), group="b")
    (table.folder / log.path).unlink()
    with pytest.raises(MissingFileError, match="b-0"):
        plan_snapshot(table.state())


def test_a_log_that_goes_while_it_is_read_is_an_error(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    plan = plan_snapshot(table.state())
    (table.folder / log.path).unlink()
    with pytest.raises(MissingFileError) as caught:
        read_arrow(plan)
    assert caught.value.context["instant"] == T2


def test_a_log_of_a_dead_write_may_go_while_it_is_read(table: HandMadeLogTable) -> None:
    """Whoever takes the write back deletes it."""
    dead = table.log(T1, 1, data_block(T2, {"k1": 99}))
    table.timeline_file(f"{T2}.deltacommit.inflight", b"")
    table.append(T3, T1, 2, data_block(T3, {"k2": 5}))
    plan = plan_snapshot(table.state())
    (table.folder / dead.path).unlink()
    assert ids(plan) == {"k1": 1, "k2": 5}


def test_a_log_of_an_archived_write_must_not_go_while_it_is_read(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 99}))
    table.append(T3, T1, 2, data_block(T3, {"k2": 5}))
    table.archive(T1)
    table.archive(T2)
    plan = plan_snapshot(table.state())
    (table.folder / log.path).unlink()
    with pytest.raises(MissingFileError):
        read_arrow(plan)


def test_logs_of_a_compacted_slice_are_no_longer_needed(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.write(T3, {"a": {"k1": (T2, 5), "k2": (T1, 2)}})
    (table.folder / log.path).unlink()
    assert ids(plan_snapshot(table.state())) == {"k1": 5, "k2": 2}


def test_a_savepoint_keeps_logs_too(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    base = BaseFile(PARTITION, "a-0", "0-1-2", T1)
    table.savepoint(T2, base, log)  # type: ignore[arg-type]
    table.write(T3, {"a": {"k1": (T2, 5), "k2": (T1, 2)}})
    table.write(T4, {"a": {"k1": (T4, 6), "k2": (T1, 2)}})
    table.archive(T1)
    table.archive(T3)
    assert ids(plan_snapshot(table.state(), T2)) == {"k1": 5, "k2": 2}
