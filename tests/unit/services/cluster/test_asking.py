"""A clustering as users ask for one: in Python, on the command line, by CALL and OPTIMIZE, and behind their writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import ClusteringError, OptionError, PartitionValueError, UnknownOptionError, UnsupportedSqlError
from lakehouse_engine.options import ClusteringOptions, check_known
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.registry import prepare
from lakehouse_engine.sql.router import route

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("day", pa.date32())])
DAYS = [20000, 20001, 20002]


def rows(first: int, *, days: list[int] = DAYS) -> pa.Table:
    numbers = list(range(first, first + 6))
    return pa.table({"id": numbers, "v": [-number for number in numbers], "day": [days[number % len(days)] for number in numbers]}, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """Two files in each of three partitions."""
    return made(tmp_path)


def made(folder: Path, **properties: str) -> HoodieTable:
    stored = {"hoodie.parquet.small.file.limit": "0", **{key.replace("__", "."): value for key, value in properties.items()}}
    table = Lakehouse(str(folder)).create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], properties=stored)
    for first in (0, 6):
        table.insert(rows(first))
    return table


def clustered(table: HoodieTable) -> list[str]:
    """Partitions of the newest clustering."""
    state = table.state
    last = [one for one in state.timeline.completed().writes() if state.commit_metadata(one).operation_type == "CLUSTER"][-1]
    return sorted(state.commit_metadata(last).partition_to_replace_file_ids or {})


def test_a_dry_run_has_the_plan_and_changes_nothing(table: HoodieTable) -> None:
    before = len(table.timeline)
    planned = table.cluster(order_by=["v"], layout="z_order", dry_run=True)
    assert (planned.instant, planned.state, planned.dry_run, len(planned.groups), planned.files_planned) == (None, "planned", True, 3, 6)
    assert planned.bytes_read == sum(one.size for one in table.state.view.latest_slices())
    assert len(table.timeline) == before


def test_a_dry_run_of_both_shows_the_pending_plan_that_would_be_run(table: HoodieTable) -> None:
    planned = table.cluster("schedule", order_by=["v"])
    shown = table.cluster(dry_run=True)
    assert (shown.instant, shown.groups, shown.state, shown.dry_run) == (planned.instant, planned.groups, "planned", True)
    (row,) = prepare(Call("run_clustering", (("table", "s.t"), ("dry_run", True)), None)).answer(table).to_pylist()
    assert (row["timestamp"], row["state"]) == (planned.instant, "PLANNED")
    assert table.cluster().instant == planned.instant
    shown = table.cluster(dry_run=True)
    assert (shown.instant, shown.state, shown.dry_run) == (None, "none", True)


def test_partitions_are_named_by_path_or_values(table: HoodieTable) -> None:
    table.cluster(order_by=["v"], partitions=["day=2024-10-04"])
    assert clustered(table) == ["day=2024-10-04"]
    table.cluster(order_by=["v"], partitions=[{"day": "2024-10-05"}])
    assert clustered(table) == ["day=2024-10-05"]
    with pytest.raises(ClusteringError, match="no partition 'day=1999-01-01' to cluster"):
        table.cluster(partitions=["day=1999-01-01"])
    with pytest.raises(PartitionValueError):
        table.cluster(partitions=["1999"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"op": "now"}, "op='now' is not one of schedule, run, schedule_and_run"),
        ({"op": "schedule", "instant": "20260101000000000"}, "takes no instant"),
        ({"op": "run", "order_by": ["v"]}, "op='run' takes no order_by"),
        ({"op": "run", "partitions": ["day=2024-10-04"]}, "op='run' takes no partitions"),
        ({"layout": "hilbert"}, "needs columns to sort by"),
        ({"order_by": ["v"], "layout": "spiral"}, "expected linear, z-order or hilbert"),
        ({"order_by": ["v,id"]}, "holds a comma"),
        ({"order_by": ["nope"]}, "'nope'"),
        ({"order_by": "v"}, "order_by is a list of texts"),
    ],
)
def test_what_does_not_go_together_is_refused(table: HoodieTable, arguments: dict[str, Any], says: str) -> None:
    before = len(table.timeline)
    with pytest.raises(OptionError, match=says):
        table.cluster(**arguments)
    assert len(table.timeline) == before


def test_scheduled_ones_are_run_by_instant_or_age(table: HoodieTable) -> None:
    first = table.cluster("schedule", order_by=["v"], partitions=["day=2024-10-04"]).instant
    second = table.cluster("schedule", order_by=["v"], partitions=["day=2024-10-05"]).instant
    assert table.cluster("run", instant=second).instant == second
    assert table.cluster("run", dry_run=True).instant == first
    assert table.cluster("run").instant == first
    assert table.cluster("run").state == "none"
    with pytest.raises(ClusteringError, match=r"is no pending \w+ of this table"):
        table.cluster("run", instant=first)


def test_the_options_of_the_table_say_how(tmp_path: Path) -> None:
    strategy = "org.apache.hudi.client.clustering.plan.strategy.SparkRecentDaysClusteringPlanStrategy"
    table = made(tmp_path, hoodie__clustering__plan__strategy__class=strategy, hoodie__clustering__plan__strategy__sort__columns="v")
    table.cluster()
    assert clustered(table) == ["day=2024-10-05", "day=2024-10-06"]


def test_the_command_line(table: HoodieTable, tmp_path: Path) -> None:
    run = CliRunner()
    base = ["--warehouse", str(tmp_path), "cluster", "s.t"]
    shown = run.invoke(cli, [*base, "--order-by", "v, id", "--layout", "z_order", "--partition", "day=2024-10-04", "--dry-run"])
    assert (shown.exit_code, "day=2024-10-04" in shown.output, "(to 1 files)" in shown.output) == (0, True, True), shown.output
    assert "dry run: nothing was changed" in shown.output
    assert re.search(r"opened.before +v 50%, id 50%", shown.output), shown.output
    done = run.invoke(cli, ["--json", *base, "--order-by", "v"])
    told = json.loads(done.stdout)
    assert (told["state"], told["files_replaced"], told["files_created"]) == ("completed", 6, 3)
    assert run.invoke(cli, [*base, "--order-by", "nope"]).exit_code == 2
    assert run.invoke(cli, [*base, "--op", "run", "--instant", "20260101000000000"]).exit_code == 3


def call(table: HoodieTable, text: str) -> list[dict[str, Any]]:
    statement = route(text, lambda parts: True)
    assert isinstance(statement, Call)
    return prepare(statement).answer(table.services).to_pylist()


def test_the_procedures(table: HoodieTable) -> None:
    shown = call(table, "call run_clustering(table => 's.t', order => 'v', op => 'schedule', show_involved_partition => true)")
    time = shown[0]["timestamp"]
    three = "day=2024-10-04,day=2024-10-05,day=2024-10-06"
    assert (shown[0]["input_group_size"], shown[0]["state"], shown[0]["files"]) == (3, "REQUESTED", 6)
    assert shown[0]["involved_partitions"] == three
    assert call(table, "call show_clustering('s.t')") == [
        {"timestamp": time, "input_group_size": 3, "state": "REQUESTED", "involved_partitions": "*"}
    ]
    done = call(table, "call run_clustering(table => 's.t', op => 'execute')")
    assert [(one["timestamp"], one["state"], one["rows_written"]) for one in done] == [(time, "COMPLETED", 12)]
    found = call(table, "call show_clustering(table => 's.t', show_involved_partition => true)")
    assert found == [{"timestamp": time, "input_group_size": 3, "state": "COMPLETED", "involved_partitions": three}]
    assert call(table, "call run_clustering(table => 's.t', op => 'execute')") == []
    with pytest.raises(OptionError, match="op => 'now' is not one of schedule, execute, scheduleAndExecute"):
        call(table, "call run_clustering(table => 's.t', op => 'now')")


def test_the_pending_ones_run_before_a_new_one(table: HoodieTable) -> None:
    first = table.cluster("schedule", order_by=["v"], partitions=["day=2024-10-04"]).instant
    done = call(table, "call run_clustering('s.t', order => 'v')")
    assert (done[0]["timestamp"], [one["input_group_size"] for one in done]) == (first, [1, 2])
    named = table.cluster("schedule", order_by=["id"], partitions=["day=2024-10-04"]).instant
    done = call(table, f"call run_clustering(table => 's.t', instants => '{named}')")
    assert [one["timestamp"] for one in done] == [named]


def test_optimize_is_a_clustering_of_the_partitions_that_the_condition_chooses(table: HoodieTable) -> None:
    done = call(table, "OPTIMIZE s.t WHERE day >= date'2024-10-05' ZORDER BY (v, id)")
    assert (len(done), done[0]["input_group_size"]) == (1, 2)
    assert clustered(table) == ["day=2024-10-05", "day=2024-10-06"]
    call(table, "optimize table s.t where day = date'2024-10-04' or day in (date '2024-10-05') zorder by id")
    assert clustered(table) == ["day=2024-10-04", "day=2024-10-05"]
    assert call(table, "optimize s.t where day > date'2030-01-01'") == []
    assert call(table, "optimize s.t") == []


@pytest.mark.parametrize("condition", ["id > 3", "day = '2024-10-05' and id = 1", "year(day) = 2024", "day = day", "true"])
def test_a_condition_that_chooses_no_partitions_is_refused(table: HoodieTable, condition: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="does not choose partitions"):
        call(table, f"optimize s.t where {condition}")


def test_what_was_committed_makes_one_due(tmp_path: Path) -> None:
    inline = {"hoodie__clustering__inline": "true", "hoodie__clustering__inline__max__commits": "3"}
    table = made(tmp_path, **inline, hoodie__clustering__plan__strategy__sort__columns="v")
    operations = lambda: [str(entry.operation) for entry in reversed(table.history())]  # noqa: E731
    assert "CLUSTER" not in operations()
    assert table.insert(rows(12)).failed_services == ()
    assert operations().count("CLUSTER") == 1
    for first in (18, 24):
        table.insert(rows(first))
    assert operations().count("CLUSTER") == 1
    table.insert(rows(30))
    assert operations().count("CLUSTER") == 2
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(36))


def test_one_that_is_only_scheduled_waits_for_another_process(tmp_path: Path) -> None:
    table = made(tmp_path, hoodie__clustering__schedule__inline="true", hoodie__clustering__inline__max__commits="2")
    (pending,) = table.timeline.pending()
    table.insert(rows(12))
    assert list(table.timeline.pending()) == [pending]
    assert table.cluster("run").instant == pending.requested_time
    table.insert(rows(18))
    (second,) = table.timeline.pending()
    assert second != pending


def test_one_that_fails_is_told_of_and_the_write_stands(tmp_path: Path) -> None:
    table = made(tmp_path)
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.plan.strategy.sort.columns": "nope"}
    result = table.insert(rows(12), options={**options, "hoodie.clustering.inline.max.commits": 1})
    assert result.instant is not None
    assert ["the clustering after the commit failed" in one and "nope" in one for one in result.failed_services] == [True]
    assert table.to_arrow().num_rows == 18


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hoodie.clustering.plan.strategy.class", "SparkConsistentBucketClusteringPlanStrategy", "split and merged by Hudi's own jobs"),
        ("hoodie.clustering.plan.strategy.class", "x.y.MyStrategy", "expected one of SparkSizeBased"),
        ("hoodie.clustering.updates.strategy", "SparkConsistentBucketDuplicateUpdateStrategy", "split and merged by Hudi's own jobs"),
        ("hoodie.clustering.execution.strategy.class", "MyExecution", "expected one of SparkSortAndSize"),
        ("hoodie.clustering.plan.strategy.sort.columns", "a,b,A", "the column 'a' is there twice"),
        ("hoodie.clustering.plan.strategy.partition.regex.pattern", "(", "no regular expression"),
        ("hoodie.clustering.plan.partition.filter.mode", "ALL", "expected one of NONE, RECENT_DAYS"),
    ],
)
def test_values_that_there_are_not_are_refused(key: str, value: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        check_known({key: value})


def test_options_that_contradict_each_other_are_refused() -> None:
    recent = {"hoodie.clustering.plan.strategy.class": "SparkRecentDaysClusteringPlanStrategy"}
    with pytest.raises(OptionError, match="contradicts"):
        ClusteringOptions.read({**recent, "hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS"})
    with pytest.raises(OptionError, match=r"needs hoodie\.clustering\.plan\.strategy\.cluster\.begin\.partition"):
        ClusteringOptions.read({"hoodie.clustering.plan.strategy.class": "SparkSelectedPartitionsClusteringPlanStrategy"})
    with pytest.raises(UnknownOptionError, match=r"did you mean 'hoodie\.clustering\.inline\.max\.commits'"):
        check_known({"hoodie.clustering.inline.max.commit": "4"})
