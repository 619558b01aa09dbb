from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CorruptInstantError, InstantCleanedError, MissingFileError, OptionError, UnsupportedTableError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.arrow_scan import iter_arrow, read_arrow
from lakehouse_engine.read.scan import ScanPlan, plan_incremental, plan_snapshot
from tests.unit.read.hand_made import PARTITION, SCHEMA, HandMadeTable, instant

T1, T2, T3, T4 = (instant(number) for number in range(1, 5))


def ids(plan: ScanPlan) -> dict[str, int]:
    """Record key -> n of every row of the plan; a key twice is a failure."""
    table = read_arrow(plan)
    found = dict(zip(table.column("id").to_pylist(), table.column("n").to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


@pytest.fixture
def table(tmp_path: Path) -> HandMadeTable:
    """Two groups of T1; T2 updates the first, T3 adds a third."""
    made = HandMadeTable(tmp_path)
    made.write(T1, {"a": {"k1": (T1, 1), "k2": (T1, 1)}, "b": {"k3": (T1, 1)}})
    made.write(T2, {"a": {"k1": (T1, 1), "k2": (T2, 2)}})
    made.write(T3, {"c": {"k4": (T3, 3)}})
    return made


def first(group: str) -> BaseFile:
    return BaseFile(PARTITION, f"{group}-0", "0-1-2", T1)


def test_a_snapshot_has_the_newest_version_of_every_group(table: HandMadeTable) -> None:
    plan = plan_snapshot(table.state())
    assert ids(plan) == {"k1": 1, "k2": 2, "k3": 1, "k4": 3}
    assert plan.instant == T3
    assert plan.size == sum((table.folder / file.path).stat().st_size for file in plan.files)


def test_a_plan_can_be_sent_to_another_process(table: HandMadeTable) -> None:
    plan = plan_incremental(table.state(), T1)
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_columns_and_meta_columns_are_picked_and_threads_change_nothing(table: HandMadeTable) -> None:
    plan = plan_snapshot(table.state())
    picked = read_arrow(plan, columns=["n"], meta_columns=True, runner=LocalRunner(3))
    assert picked.column_names == [*META_COLUMNS, "n"]
    assert set(picked.schema.types) == {pa.string(), pa.int64()}
    assert read_arrow(plan, columns=["n", COMMIT_TIME]).column_names == ["n", COMMIT_TIME]
    assert read_arrow(plan, columns=[]).num_rows == 4
    assert sum(part.num_rows for part in iter_arrow(plan)) == 4


def test_time_travel_shows_the_table_as_it_was(table: HandMadeTable) -> None:
    state = table.state()
    assert ids(plan_snapshot(state, T1)) == {"k1": 1, "k2": 1, "k3": 1}
    assert ids(plan_snapshot(state, T2)) == {"k1": 1, "k2": 2, "k3": 1}
    between = plan_snapshot(state, T2[:-1] + "5")
    assert ids(between) == {"k1": 1, "k2": 2, "k3": 1}
    assert between.instant == T2


def test_before_the_first_commit_there_are_columns_and_no_rows(table: HandMadeTable) -> None:
    plan = plan_snapshot(table.state(), "20200101000000000")
    assert plan.instant is None
    assert read_arrow(plan).equals(SCHEMA.empty_table())


def test_a_table_without_commits_has_no_rows_and_no_columns(tmp_path: Path) -> None:
    plan = plan_snapshot(HandMadeTable(tmp_path).state())
    assert read_arrow(plan).shape == (0, 0)


def test_replaced_groups_count_from_the_replacing_instant_on(table: HandMadeTable) -> None:
    table.write(T4, {"d": {"k9": (T4, 9)}}, replaces=("a", "b"))
    state = table.state()
    assert ids(plan_snapshot(state)) == {"k4": 3, "k9": 9}
    assert ids(plan_snapshot(state, T3)) == {"k1": 1, "k2": 2, "k3": 1, "k4": 3}
    assert ids(plan_incremental(state, T1)) == {"k4": 3, "k9": 9}
    assert ids(plan_incremental(state, T1, T3)) == {"k2": 2, "k4": 3}


def test_pending_writes_and_foreign_files_are_invisible(table: HandMadeTable) -> None:
    table.write(T4, {"a": {"k1": (T4, 99)}, "d": {"k9": (T4, 9)}})
    (table.folder / ".hoodie" / f"{T4}.commit").rename(table.folder / ".hoodie" / f"{T4}.commit.requested")
    for name in ("_SUCCESS", "part-0000.parquet", ".tmp"):
        (table.folder / PARTITION / name).write_bytes(b"foreign")
    assert ids(plan_snapshot(table.state())) == {"k1": 1, "k2": 2, "k3": 1, "k4": 3}


def test_an_incremental_read_has_the_rows_changed_in_the_range_as_they_were_at_its_end(table: HandMadeTable) -> None:
    state = table.state()
    everything = {"k1": 1, "k2": 2, "k3": 1, "k4": 3}
    for start in (None, "000", "earliest"):
        assert ids(plan_incremental(state, start)) == everything
    assert ids(plan_incremental(state, T1)) == {"k2": 2, "k4": 3}
    assert ids(plan_incremental(state, T1, T2)) == {"k2": 2}
    assert ids(plan_incremental(state, None, T1)) == {"k1": 1, "k2": 1, "k3": 1}
    assert ids(plan_incremental(state, T3)) == {}
    assert ids(plan_incremental(state, T2, T2)) == {}


def test_an_incremental_read_opens_only_files_written_in_its_range(table: HandMadeTable) -> None:
    assert [file.file_id for file in plan_incremental(table.state(), T2).files] == ["c-0"]


@pytest.mark.parametrize("time", ["yesterday", "2024-01-01", ""])
def test_times_that_are_no_instants_are_refused(table: HandMadeTable, time: str) -> None:
    state = table.state()
    for plan in (lambda: plan_incremental(state, time), lambda: plan_incremental(state, None, time), lambda: plan_snapshot(state, time)):
        with pytest.raises(OptionError, match="no instant time"):
            plan()


def test_a_range_that_ends_before_it_begins_is_refused(table: HandMadeTable) -> None:
    with pytest.raises(OptionError, match="ends before"):
        plan_incremental(table.state(), T2, T1)


def test_a_lost_base_file_is_an_error_and_not_fewer_rows(table: HandMadeTable) -> None:
    table.remove(first("b"))
    state = table.state()
    for plan in (lambda: plan_snapshot(state), lambda: plan_incremental(state, None)):
        with pytest.raises(MissingFileError, match=T1):
            plan()
    assert ids(plan_incremental(state, T1)) == {"k2": 2, "k4": 3}


def test_a_lost_base_file_that_a_clean_deleted_is_told_so(table: HandMadeTable) -> None:
    table.remove(first("b"))
    with pytest.raises(MissingFileError, match="no clean on the timeline"):
        plan_snapshot(table.state())
    table.clean(T4, first("b"))
    with pytest.raises(MissingFileError, match=f"the clean {T4} deleted it"):
        plan_snapshot(table.state())


def test_a_lost_newest_version_is_not_answered_with_the_one_before(table: HandMadeTable) -> None:
    table.remove(table.versions["a"])
    with pytest.raises(MissingFileError, match=T2):
        plan_snapshot(table.state())


def test_a_file_lost_between_planning_and_reading_is_an_error(table: HandMadeTable) -> None:
    plan = plan_snapshot(table.state())
    table.remove(table.versions["c"])
    with pytest.raises(MissingFileError, match=T3):
        read_arrow(plan)


def test_time_travel_to_cleaned_files_names_the_earliest_instant_that_can_be_read(table: HandMadeTable) -> None:
    table.remove(first("a"))
    state = table.state()
    with pytest.raises(InstantCleanedError) as caught:
        plan_snapshot(state, T1)
    assert caught.value.context["earliest"] == T2
    assert ids(plan_snapshot(state, T2)) == {"k1": 1, "k2": 2, "k3": 1}
    with pytest.raises(InstantCleanedError):
        plan_incremental(state, None, T1)
    assert ids(plan_incremental(state, T1, T2)) == {"k2": 2}


def test_time_travel_notices_cleaned_groups_that_were_replaced_since(table: HandMadeTable) -> None:
    table.write(T4, {"d": {"k9": (T4, 9)}}, replaces=("b",))
    table.remove(first("b"))
    state = table.state()
    assert ids(plan_snapshot(state)) == {"k1": 1, "k2": 2, "k4": 3, "k9": 9}
    with pytest.raises(InstantCleanedError) as caught:
        plan_snapshot(state, T3)
    assert caught.value.context["earliest"] == T4


def test_time_travel_notices_cleaned_files_of_archived_writes(table: HandMadeTable) -> None:
    table.write(T4, {"b": {"k3": (T4, 4)}})
    table.archive(T1)
    table.remove(first("b"))
    state = table.state()
    assert ids(plan_snapshot(state)) == {"k1": 1, "k2": 2, "k3": 4, "k4": 3}
    with pytest.raises(InstantCleanedError):
        plan_snapshot(state, T3)


def test_time_travel_before_the_active_timeline_is_refused(table: HandMadeTable) -> None:
    table.archive(T1)
    state = table.state()
    assert ids(plan_snapshot(state, T2)) == {"k1": 1, "k2": 2, "k3": 1}
    with pytest.raises(InstantCleanedError, match="archived"):
        plan_snapshot(state, T1)
    with pytest.raises(InstantCleanedError, match="archived"):
        plan_incremental(state, None, T1)


def test_a_savepointed_instant_stays_readable_when_all_around_it_is_archived(table: HandMadeTable) -> None:
    table.savepoint(T1, first("a"), first("b"))
    table.archive(T2)
    plan = plan_snapshot(table.state(), T1)
    assert ids(plan) == {"k1": 1, "k2": 1, "k3": 1}
    assert plan.size > 0
    table.remove(first("a"))
    with pytest.raises(MissingFileError, match="savepoint"):
        plan_snapshot(table.state(), T1)


def test_an_incremental_read_from_the_start_includes_rows_of_archived_commits(table: HandMadeTable) -> None:
    table.archive(T1)
    assert ids(plan_incremental(table.state(), "000")) == {"k1": 1, "k2": 2, "k3": 1, "k4": 3}


@pytest.mark.parametrize("content", [b"", b'{"partitionToWriteStats": {'])
def test_a_torn_commit_is_an_error_and_not_an_empty_commit(table: HandMadeTable, content: bytes) -> None:
    table.timeline_file(f"{T3}.commit", content)
    with pytest.raises(CorruptInstantError):
        plan_snapshot(table.state())


def test_empty_requested_and_inflight_files_are_legal(table: HandMadeTable) -> None:
    for name in (f"{T3}.commit.requested", f"{T3}.inflight", f"{T4}.commit.requested", f"{T4}.inflight"):
        table.timeline_file(name, b"")
    assert ids(plan_snapshot(table.state())) == {"k1": 1, "k2": 2, "k3": 1, "k4": 3}


def test_the_schema_is_that_of_the_newest_commit_that_has_one(table: HandMadeTable) -> None:
    wider = pa.schema([("id", pa.string()), ("n", pa.int64()), ("extra", pa.float64())])
    assert table_schema(table.state()) == SCHEMA
    metadata = table.folder / ".hoodie" / f"{T4}.commit"
    table.write(T4, {}, schema=wider)
    assert metadata.is_file()
    table.write(instant(5), {}, schema=None)
    state = table.state()
    assert table_schema(state) == wider
    assert table_schema(state, T3) == SCHEMA
    assert read_arrow(plan_snapshot(state)).column("extra").null_count == 4
    assert plan_snapshot(state, T3).schema == SCHEMA


def test_without_a_schema_in_any_commit_it_comes_from_the_newest_file(tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path)
    made.write(T1, {"a": {"k1": (T1, 1)}}, schema=None)
    assert table_schema(made.state()) == SCHEMA
    assert ids(plan_snapshot(made.state())) == {"k1": 1}


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "drop.partition.columns"),
    ],
)
def test_tables_that_would_be_read_wrongly_are_refused_by_name(tmp_path: Path, properties: dict[str, str], word: str) -> None:
    state = HandMadeTable(tmp_path, properties).state()
    for plan in (lambda: plan_snapshot(state), lambda: plan_snapshot(state, T1), lambda: plan_incremental(state, None)):
        with pytest.raises(UnsupportedTableError, match=word):
            plan()


def test_a_schema_on_read_history_is_refused(table: HandMadeTable) -> None:
    (table.folder / ".hoodie" / ".schema").mkdir()
    (table.folder / ".hoodie" / ".schema" / f"{T2}.schemacommit").write_bytes(b"{}")
    with pytest.raises(UnsupportedTableError, match="schema-on-read"):
        plan_snapshot(table.state())


def test_bootstrapped_files_without_rows_are_refused_while_they_are_live(tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path)
    bootstrap = "00000000000001"
    made.write(bootstrap, {"a": {"k1": (bootstrap, 1)}})
    with pytest.raises(UnsupportedTableError, match="METADATA_ONLY"):
        plan_snapshot(made.state())
    made.write(T1, {"a": {"k1": (T1, 2)}})
    assert ids(plan_snapshot(made.state())) == {"k1": 2}


def test_incremental_reads_need_meta_columns(tmp_path: Path) -> None:
    state = HandMadeTable(tmp_path, {"hoodie.populate.meta.fields": "false"}).state()
    with pytest.raises(UnsupportedTableError, match="meta columns"):
        plan_incremental(state, None)
