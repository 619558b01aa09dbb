"""The recovery benchmark: its tables are whole, its figures are judged as the goals say, and what fails has no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.recovery.figures import Figure, Limit, Ratio, judge, markdown
from benchmarks.recovery.local import Sizes, figures, limits, measure, ratios
from benchmarks.recovery.tables import BrokenTableError, add_files, check, long_timeline, make_table


def test_every_figure_of_a_small_table_is_measured(tmp_path):
    sizes = Sizes(files=200, timelines=(60,), repeats=1)
    found = list(figures(tmp_path, sizes))
    assert [figure.error for figure in found if figure.error] == []
    names = [figure.name for figure in found]
    assert {limit.figure for limit in limits(sizes)} <= set(names)
    assert "restore over 20 commits, 200 files to delete" in names
    assert "open, 60, all but 20 archived instants" in names


def test_a_long_timeline_is_a_whole_table_whose_rows_are_of_its_newest_commit(tmp_path):
    table = long_timeline(tmp_path, "long", 30)
    check(table)
    newest = table.timeline.completed().last().requested_time
    read = table.to_arrow(meta_columns=True)
    assert (len(table.timeline.completed()), read.num_rows) == (30, 50)
    assert set(read["_hoodie_commit_time"].to_pylist()) == {newest}
    assert table.to_arrow(as_of="-7").num_rows == 50


def test_a_table_with_a_lost_file_is_not_measured_on(tmp_path):
    table = make_table(tmp_path, "files", partitioned=True)
    add_files(table, files=20, commits=2, partitions=10, start=0)
    check(table)
    next(Path(table.path).rglob("*.parquet")).unlink()
    with pytest.raises(BrokenTableError, match=r"not there|gone|missing"):
        check(table)


def test_a_run_that_fails_is_a_figure_without_times(tmp_path):
    table = make_table(tmp_path, "files", partitioned=True)

    def fail(copy):
        raise BrokenTableError("3 files, expected 4")

    assert measure("x", Path(table.path), fail, 2) == Figure("x", error="BrokenTableError: 3 files, expected 4")


def test_limits_and_ratios_judge_medians_and_leave_out_what_is_missing():
    found = [Figure("slow", (9.0, 2.0, 1.0)), Figure("fast", (0.1,)), Figure("failed", error="no")]
    wanted = [Limit("slow", 2), Limit("fast", 0.2), Limit("failed", 1), Limit("absent", 1)]
    pairs = [Ratio("10x", "slow", "fast", 10, False), Ratio("same", "slow", "fast", 1.5, True), Ratio("none", "failed", "fast", 1, True)]
    assert [(goal.text, goal.met) for goal in judge(found, wanted, pairs)] == [
        ("slow: under 2 s", False),
        ("fast: under 0.2 s", True),
        ("10x", True),
        ("same", False),
    ]


def test_the_report_shows_errors_where_there_is_no_time():
    text = markdown({"load": "0.1"}, [Figure("a", (2.0,), (1.5,), "one file"), Figure("b", error="Lost: it\nwas")], [])
    assert "| a | 2.000" in text
    assert "| **error** |" in text
    assert "Lost: it was" in text


def test_only_restores_with_a_file_a_commit_are_asked_for():
    assert Sizes(10_000, (1_000,), 3).restores() == [(1, 1_000), (20, 1_000), (100, 1_000), (20, 100), (20, 10_000)]
    assert Sizes(200, (60,), 3).restores() == [(1, 20), (20, 20), (20, 200)]
    assert [ratio.limit for ratio in ratios(Sizes(10_000, (1_000,), 3))] == [1.5]
