"""Which slices a clustering takes, and how it groups them; the plan's record beside one of Hudi's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.options import ClusteringOptions
from lakehouse_engine.options.clustering import SINGLE_FILE, Selection
from lakehouse_engine.services.cluster.partitions import selected
from lakehouse_engine.services.cluster.plan import Candidate, encoded_plan, plan_groups

MB = 1024 * 1024
T = "20260101000000000"
SORTED = ClusteringOptions(sort_columns=("v",), small_file_limit=None)


def piece(name: str, size: int, *, part: str = "p", log: int = 0) -> FileSlice:
    logs = (LogFile(part, name, T, 1, "1-0-1", size=log),) if log else ()
    return FileSlice(FileGroupId(part, name), T, BaseFile(part, name, "0-0-0", T, size=size), logs)


def grouped(*candidates: Candidate, options: ClusteringOptions = SORTED, alone: bool = False) -> list[list[str]]:
    return [[one.file_id for one in group] for group in plan_groups({"p": candidates}, options, alone=alone).groups]


def fresh(name: str, size: int = MB, **more: int) -> Candidate:
    return Candidate(piece(name, size, **more))


def settled(name: str, size: int) -> Candidate:
    return Candidate(piece(name, size), in_order=True)


def test_the_largest_files_come_first_until_a_group_is_full() -> None:
    options = replace(SORTED, group_bytes=10 * MB)
    found = grouped(fresh("a", 3 * MB), fresh("b", 9 * MB), fresh("c", 4 * MB), fresh("d", 2 * MB), options=options)
    assert found == [["b"], ["c", "a", "d"]]


def test_a_file_larger_than_a_group_is_one_alone() -> None:
    assert grouped(fresh("a", 30 * MB), fresh("b", 1), options=replace(SORTED, group_bytes=MB)) == [["a"], ["b"]]


def test_groups_beyond_the_bound_are_left_for_the_next_one() -> None:
    candidates = {str(number): [Candidate(piece(f"f{number}", MB, part=str(number)))] for number in range(5)}
    found = plan_groups(candidates, replace(SORTED, groups=2))
    assert ([group[0].file_id for group in found.groups], found.left) == (["f0", "f1"], 3)


def test_without_columns_only_small_files_are_taken_and_none_alone() -> None:
    options = ClusteringOptions()
    assert grouped(fresh("a", 299 * MB), fresh("b", 300 * MB), fresh("c", MB), options=options) == [["a", "c"]]
    assert grouped(fresh("a"), options=options) == []
    assert grouped(fresh("a", log=1), options=options) == [["a"]]


def test_a_file_alone_is_sorted_unless_the_option_says_no() -> None:
    assert grouped(fresh("a")) == [["a"]]
    assert grouped(fresh("a"), options=replace(SORTED, single_group=False)) == []


def test_files_in_order_are_left_alone_until_as_much_is_new() -> None:
    assert grouped(settled("old", MB), settled("older", MB)) == []
    assert grouped(settled("old", 10 * MB), fresh("new", MB)) == [["new"]]
    assert grouped(settled("old", 2 * MB), settled("older", MB), fresh("new", MB)) == [["old", "new", "older"]]
    assert grouped(settled("large", 400 * MB), fresh("new", 500 * MB)) == [["new"]]


@pytest.mark.parametrize("alone", [True, False])
def test_slices_that_are_kept_apart_make_a_group_each(*, alone: bool) -> None:
    options = SORTED if alone else replace(SORTED, strategy=SINGLE_FILE)
    assert grouped(fresh("a", 2), fresh("b", 1), settled("c", 1), options=options, alone=alone) == [["a"], ["b"]]


def test_the_plan_is_written_as_by_hudi() -> None:
    """Members as in the fixture `v6-0.15.0/mor_clustering`."""
    options = ClusteringOptions(sort_columns=("amount", "name"), target_file_bytes=2 * MB)
    groups = plan_groups({"p": [fresh("a", 3 * MB, log=5), fresh("b", 2 * MB)]}, options)
    record = encoded_plan(groups, options, lambda path: f"file:/t/{path}")
    plan = record.clustering_plan
    assert plan is not None
    assert plan.strategy is not None
    assert plan.input_groups is not None
    assert (record.operation_type, record.version, record.extra_metadata) == ("CLUSTER", 1, {})
    assert (plan.preserve_hoodie_metadata, plan.version, plan.extra_metadata) == (True, 1, {})
    name = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
    assert (plan.strategy.strategy_class_name, plan.strategy.version) == (name, 1)
    assert plan.strategy.strategy_params == {"hoodie.clustering.plan.strategy.sort.columns": "amount,name"}
    (group,) = plan.input_groups
    assert group.num_output_file_groups == 3
    metrics = {"TOTAL_LOG_FILES": 1.0, "TOTAL_LOG_FILES_SIZE": 5.0, "TOTAL_IO_READ_MB": 5.0, "TOTAL_IO_WRITE_MB": 5.0, "TOTAL_IO_MB": 10.0}
    assert group.metrics == metrics
    assert group.slices is not None
    first = group.slices[0]
    assert (first.data_file_path, first.file_id, first.partition_path) == (f"file:/t/p/a_0-0-0_{T}.parquet", "a", "p")
    assert (first.delta_file_paths, first.bootstrap_file_path, first.version) == ((f"file:/t/p/.a_{T}.log.1_1-0-1",), "", 1)


def test_a_curve_is_named_in_the_plan() -> None:
    options = ClusteringOptions(sort_columns=("a", "b"), layout="z-order")
    plan = encoded_plan(plan_groups({"p": [fresh("a")]}, options), options, str).clustering_plan
    assert plan is not None
    assert plan.strategy is not None
    assert plan.strategy.strategy_params is not None
    assert plan.strategy.strategy_params["hoodie.layout.optimize.strategy"] == "z-order"


PARTITIONS = ["2026/01/01", "2026/01/02", "2026/01/03", "2026/01/04"]


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        (Selection(), PARTITIONS),
        (Selection(mode="RECENT_DAYS"), ["2026/01/04", "2026/01/03"]),
        (Selection(mode="RECENT_DAYS", skipped=1, lookback=1), ["2026/01/03"]),
        (Selection(mode="SELECTED_PARTITIONS", begin="2026/01/02", end="2026/01/03"), PARTITIONS[1:3]),
        (Selection(pattern="2026/01/0[13]"), [PARTITIONS[0], PARTITIONS[2]]),
        (Selection(named=("2026/01/04", "x")), ["2026/01/04"]),
        (Selection(mode="DAY_ROLLING"), [PARTITIONS[2]]),
    ],
)
def test_partitions_are_selected(selection: Selection, found: list[str]) -> None:
    assert selected(reversed(PARTITIONS), selection, hour=2) == found
