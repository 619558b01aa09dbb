from __future__ import annotations

import json

import pytest

from benchmarks.cells import Cell, Measurement, Peak, Status
from benchmarks.goals import judge
from benchmarks.render import SizeReport, markdown, ratio, table

MIB = 1024 * 1024


def timed(contender: str, cell: Cell, *seconds: float, jobs: int = -1, driver: int = 300) -> Measurement:
    return Measurement(contender, cell, Status.OK, "", seconds, Peak(900 * MIB, driver * MIB, 500 * MIB), jobs, 2, 3 * MIB)


def report(*items: Measurement, skipped: dict[str, str] | None = None) -> str:
    names = dict.fromkeys(item.contender for item in items)
    size = SizeReport(
        1_000_000, {name: name.title() for name in names}, list(Cell), {(i.contender, i.cell): i for i in items}, skipped or {}
    )
    return markdown({"load": "0.1"}, [size])


def test_table_pads_columns_and_escapes_bars():
    assert table([["", "a"], ["long|name", "1"]]) == ["|            | a |", "|------------|---|", "| long\\|name | 1 |"]


def test_times_are_medians_with_the_ratio_to_ours():
    text = report(timed("ours", Cell.UPSERT_1, 9.0, 2.0, 1.0), timed("hudi", Cell.UPSERT_1, 20.0, 30.0, 10.0))
    assert "| Ours | -" in text
    assert " 2.00 " in text
    assert "20.00 (10.00x)" in text


def test_ratio_to_a_zero_time_is_not_a_number_shown():
    assert ratio(1.0, 0.0) == "-"


def test_a_wrong_result_shows_as_an_error_and_never_as_a_time():
    wrong = Measurement("hudi", Cell.UPSERT_1, Status.ERROR, "WrongResultError: the table\nhas 3 rows")
    text = report(timed("ours", Cell.UPSERT_1, 2.0), wrong)
    assert "**error**" in text
    assert "- Hudi, upsert 1 %: WrongResultError: the table has 3 rows" in text
    with pytest.raises(ValueError, match="has no time"):
        _ = wrong.median


def test_others_are_shown_without_a_ratio_when_ours_failed():
    text = report(Measurement("ours", Cell.UPSERT_1, Status.ERROR, "x"), timed("hudi", Cell.UPSERT_1, 2.0))
    assert " 2.00 " in text
    assert "x)" not in text


def test_skipped_contenders_are_listed_with_their_reason():
    assert "- hudi: skipped: no mvn" in report(timed("ours", Cell.UPSERT_1, 2.0), skipped={"hudi": "no mvn"})


def test_memory_and_work_are_printed_in_mib():
    text = report(timed("ours", Cell.UPSERT_1, 2.0, jobs=3))
    assert "900 / 300" in text
    assert "3 / 2 / 3.0" in text


def test_memory_that_was_not_sampled_is_not_shown_as_zero():
    assert "not measured" in report(Measurement("ours", Cell.UPSERT_1, Status.OK, "", (1.0,)))


@pytest.mark.parametrize(("seconds", "met"), [(2.6, True), (2.7, False)])
def test_goal_against_the_floor_is_met_up_to_its_limit(seconds, met):
    items = [timed("ours", Cell.UPSERT_1, seconds, jobs=3), timed("floor", Cell.UPSERT_1, 2.0)]
    goals = judge({(item.contender, item.cell): item for item in items})
    assert [goal.met for goal in goals if "floor" in goal.text] == [met]
    assert [goal.met for goal in goals if "three Spark jobs" in goal.text] == [True]


def test_goals_of_merge_on_read_tables_are_judged_in_their_direction():
    items = [
        timed("ours_mor", Cell.UPSERT_1, 1.0),
        timed("ours_mor_bucket", Cell.UPSERT_1, 0.9),
        timed("hudi_mor", Cell.UPSERT_1, 7.9),
        timed("ours_mor", Cell.SNAPSHOT_NARROW, 1.0),
        timed("ours", Cell.SCAN_NARROW, 0.5),
        timed("ours_mor", Cell.UPSERT_SERIES, 9.0, 1.0, 1.0, 5.0, 1.3, 1.3, 0.1),
        timed("ours_mor_bucket", Cell.UPSERT_SERIES, 1.0, 1.0, 1.0, 5.0, 1.4, 1.4, 1.4),
    ]
    goals = judge({(item.contender, item.cell): item for item in items})
    assert {goal.text: goal.met for goal in goals} == {
        "upsert 1 %: at least 8x faster than Hudi with its default index": False,
        "upsert 1 %: faster with a bucket index than with the default one": True,
        "snapshot of 2 columns, warm: at most 2x the copy-on-write table": True,
        "twenty upserts of 1 %, default index: the last three at most 1.3x the first three": True,
        "twenty upserts of 1 %, bucket index: the last three at most 1.3x the first three": False,
    }


def test_a_series_is_shown_time_by_time_with_its_growth():
    text = report(timed("ours_mor", Cell.UPSERT_SERIES, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0))
    assert "| 3.00x" in text
    assert "1.00 1.00 1.00 2.00 3.00 3.00 3.00" in text


def test_goals_without_their_measurements_are_not_judged():
    failed = Measurement("hudi", Cell.UPSERT_1, Status.ERROR, "x")
    ours = timed("ours", Cell.UPSERT_1, 2.0, jobs=4, driver=3000)
    goals = judge({(item.contender, item.cell): item for item in (ours, failed)})
    assert [(goal.text, goal.met) for goal in goals] == [
        ("upsert 1 %: at most three Spark jobs", False),
        ("upsert 1 %: driver process under 2 GiB", False),
    ]


def test_measurements_can_be_stored_as_json():
    stored = json.loads(json.dumps(timed("ours", Cell.SCAN_WIDE, 1.5).as_json()))
    assert (stored["cell"], stored["status"], stored["seconds"], stored["peak"]["tree"]) == ("scan_wide", "ok", [1.5], 900 * MIB)
