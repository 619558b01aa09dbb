"""Writes that name the state they were computed from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.expected import ExpectedState, check_expected
from lakehouse_engine.errors import ChangedSinceReadError, OptionError
from lakehouse_engine.model.instant import Action, Instant, State
from tests.support.untouched import files_below

FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])


def rows(ids: str, value: str, partition: str) -> pa.Table:
    numbers = [int(one) for one in ids.split()]
    return pa.table({"id": numbers, "v": [value] * len(numbers), "p": [partition] * len(numbers)}, schema=SCHEMA)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    lake = Lakehouse(str(tmp_path))
    lake.create_schema("s")
    made = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=request.param)
    made.insert(rows("1 2", "old", "x"))
    made.insert(rows("3", "old", "y"))
    return made


def newest(table: HoodieTable) -> str:
    last = table.timeline.completed().writes().last()
    assert last is not None
    return last.requested_time


def values(table: HoodieTable) -> dict[int, str]:
    read = table.to_arrow(["id", "v"])
    return dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True))


def test_a_write_goes_through_while_nobody_touched_its_partitions(table: HoodieTable) -> None:
    read = newest(table)
    table.upsert(rows("3 4", "theirs", "y"))
    table.upsert(rows("1", "mine", "x"), expected_instant=read)
    assert values(table) == {1: "mine", 2: "old", 3: "theirs", 4: "theirs"}


WRITES = {
    "upsert": lambda table, **given: table.upsert(rows("1", "mine", "x"), **given),
    "delete": lambda table, **given: table.delete(rows("1", "mine", "x").select(["id", "p"]), **given),
    "insert": lambda table, **given: table.insert(rows("9", "mine", "x"), **given),
    "bulk insert": lambda table, **given: table.bulk_insert(rows("9", "mine", "x"), **given),
    "overwrite": lambda table, **given: table.insert_overwrite(rows("9", "mine", "x"), **given),
    "overwrite table": lambda table, **given: table.insert_overwrite_table(rows("9", "mine", "y"), **given),
    "delete partitions": lambda table, **given: table.delete_partitions(["p=x"], **given),
}


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_a_write_of_a_partition_that_was_touched_since_is_refused_and_leaves_nothing(table: HoodieTable, write: str) -> None:
    read = newest(table)
    table.upsert(rows("2", "theirs", "x"))
    before = files_below(Path(table.path))
    with pytest.raises(ChangedSinceReadError, match=f"as of {read}; .* and repeat the write\\b(?!, or)") as raised:
        WRITES[write](table, expected_instant=read)
    assert files_below(Path(table.path)) == before
    assert raised.value.context["instant"] == newest(table)
    assert values(table) == {1: "old", 2: "theirs", 3: "old"}
    WRITES[write](table, expected_instant=newest(table))


def test_a_row_that_moves_between_partitions_touches_both(table: HoodieTable) -> None:
    read = newest(table)
    table.upsert(rows("1", "moved", "y"))
    for partition in "xy":
        with pytest.raises(ChangedSinceReadError):
            table.insert(rows("9", "mine", partition), expected_instant=read)


TAKES = {
    "delete": lambda table: table.delete(rows("1", "", "x").select(["id", "p"])),
    "upsert that deletes too": lambda table: table.upsert(rows("2", "theirs", "x"), delete_keys=rows("1", "", "x").select(["id", "p"])),
    "delete partitions": lambda table: table.delete_partitions(["p=x"]),
    "overwrite": lambda table: table.insert_overwrite(rows("9", "theirs", "x")),
}


@pytest.mark.parametrize("take", TAKES, ids=str)
def test_a_row_that_was_taken_away_since_is_not_brought_back_in_another_partition(table: HoodieTable, take: str) -> None:
    read = newest(table)
    TAKES[take](table)
    after = values(table)
    with pytest.raises(ChangedSinceReadError, match="in p=x after"):
        table.upsert(rows("1", "moved", "y"), expected_instant=read)
    assert values(table) == after
    assert 1 not in after
    table.upsert(rows("3", "mine", "y"), expected_instant=read)


def test_new_rows_are_added_beside_those_that_others_added_elsewhere(table: HoodieTable) -> None:
    read = newest(table)
    table.upsert(rows("9", "theirs", "x"))
    table.upsert(rows("3 8", "mine", "y"), expected_instant=read)
    assert values(table) == {1: "old", 2: "old", 3: "mine", 8: "mine", 9: "theirs"}


def test_an_instant_that_was_taken_back_or_never_was_is_refused(table: HoodieTable) -> None:
    table.upsert(rows("1", "gone", "x"))
    gone = newest(table)
    table.rollback(gone)
    for unknown in (gone, "20200101000000000"):
        with pytest.raises(ChangedSinceReadError, match=f"no commit {unknown}"):
            table.upsert(rows("1", "mine", "x"), expected_instant=unknown)
    with pytest.raises(OptionError):
        table.upsert(rows("1", "mine", "x"), expected_instant="no such thing")


def test_what_was_archived_since_counts_as_there_and_what_came_after_it_as_touched(table: HoodieTable) -> None:
    read, seen = newest(table), ExpectedState.of(table.state)
    for number in range(4):
        table.upsert(rows("3", f"theirs {number}", "y"))
    last = newest(table)
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()  # archiving keeps what logs are still to be compacted of
    assert table.archive(options=FEW)
    with pytest.raises(ChangedSinceReadError, match="archived"):
        table.upsert(rows("1", "mine", "x"), expected_instant=read)
    with pytest.raises(ChangedSinceReadError, match="archived"):
        check_expected(table.state, seen.within(["p=x"]))
    table.upsert(rows("1", "mine", "x"), expected_instant=last)
    assert values(table)[1] == "mine"


def test_a_write_that_completes_below_the_newest_one_that_was_read_is_seen(table: HoodieTable) -> None:
    """Other writers complete out of order; the state that was read is a set."""
    state = table.state
    seen = ExpectedState.of(state)
    first = state.timeline.completed().writes().first()
    assert first is not None
    without = ExpectedState(seen.instant, seen.writes - {first.requested_time})
    check_expected(state, seen)
    with pytest.raises(ChangedSinceReadError):
        check_expected(state, without)


def test_services_do_not_count(table: HoodieTable) -> None:
    if table.config.table_type.value == "COPY_ON_WRITE":
        pytest.skip("copy-on-write tables have no compactions")
    table.upsert(rows("1", "new", "x"))
    read = newest(table)
    assert table.compact().instant
    table.upsert(rows("1", "mine", "x"), expected_instant=read)
    assert values(table)[1] == "mine"


def test_the_commit_names_its_writer(table: HoodieTable) -> None:
    metadata = table.state.commit_metadata(Instant(newest(table), _action(table), State.COMPLETED))
    assert metadata.extra_metadata["lakehouse.writer"].startswith("process ")


def _action(table: HoodieTable) -> Action:
    return Action.COMMIT if table.config.table_type.value == "COPY_ON_WRITE" else Action.DELTA_COMMIT


def test_a_write_that_finds_nothing_to_change_any_more_says_that_it_was_overtaken(table: HoodieTable) -> None:
    read = newest(table)
    table.delete(rows("1", "", "x").select(["id", "p"]))
    with pytest.raises(ChangedSinceReadError):
        table.delete(rows("1", "", "x").select(["id", "p"]), expected_instant=read)
    table.delete_partitions(["p=x"])
    with pytest.raises(ChangedSinceReadError):
        table.delete_partitions(["p=x"], expected_instant=read)
    assert table.delete(rows("7", "", "y").select(["id", "p"]), expected_instant=newest(table)).instant is None


def test_a_row_that_is_older_than_what_came_meanwhile_is_refused_rather_than_dropped(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    counter = Lakehouse(str(tmp_path)).create_table("s.counter", schema=schema, record_key=["id"], ordering_fields=["n"])
    counter.insert(pa.table({"id": [1], "n": [1]}, schema=schema))
    read = newest(counter)
    counter.upsert(pa.table({"id": [1], "n": [3]}, schema=schema))
    with pytest.raises(ChangedSinceReadError):
        counter.upsert(pa.table({"id": [1], "n": [2]}, schema=schema), expected_instant=read)
    assert counter.upsert(pa.table({"id": [1], "n": [2]}, schema=schema), expected_instant=newest(counter)).instant is None
