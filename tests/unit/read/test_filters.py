"""Reads with filters: the rows that a filter is true of, and what is not touched for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit import publish
from lakehouse_engine.errors import MissingFileError, OptionError
from lakehouse_engine.files import footers
from lakehouse_engine.files.base_file import base_file_metadata
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.read import arrow_scan
from lakehouse_engine.services.archive.execute import execute_archive
from lakehouse_engine.storage.base import Listing
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.undo.savepoint import create_savepoint, delete_savepoint
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write import operation
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows

F = pc.field
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string()), ("n", pa.int32()), ("x", pa.float64())])
DAYS = 6


class WatchedStorage(MemoryStorage):
    """Remembers which data files were opened, and which partitions were listed."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.listed: list[str] = []

    def forget(self) -> None:
        self.opened, self.listed = [], []

    def open_input(self, path: str) -> pa.NativeFile:
        self._note(path)
        return super().open_input(path)

    def read(self, path: str) -> bytes:
        self._note(path)
        return super().read(path)

    def list(self, path: str) -> Listing:
        if path and not path.startswith(".hoodie"):
            self.listed.append(path)
        return super().list(path)

    def _note(self, path: str) -> None:
        if not path.startswith(".hoodie") and ".hoodie_partition_metadata" not in path:
            self.opened.append(path)


def rows(ids: range, *, ts: int = 0, n: int = 0, x: float | None = 0.0, days: int = DAYS) -> pa.Table:
    columns: Mapping[str, Any] = {
        "id": list(ids),
        "ts": [ts] * len(ids),
        "day": [f"2026-01-{1 + one % days:02d}" for one in ids],
        "n": [n] * len(ids),
        "x": [x] * len(ids),
    }
    return pa.table(columns, schema=SCHEMA)


def made(table_type: str = "cow", storage: MemoryStorage | None = None, **arguments: Any) -> LocalTable:
    built = storage or WatchedStorage()
    spec = {"partition_by": ["day"], **arguments}
    create_table(built, TableSpec("t", SCHEMA, ["id"], ["ts"], table_type=table_type, **spec))
    return LocalTable(built)


def watched(table: LocalTable) -> WatchedStorage:
    assert isinstance(table.storage, WatchedStorage)
    table.storage.forget()
    return table.storage


def partitions(paths: list[str]) -> set[str]:
    return {path.partition("/")[0] for path in paths}


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> LocalTable:
    """Six days with two commits each; on merge-on-read tables the second is in logs."""
    built = made(request.param)
    built.insert(rows(range(60)))
    built.upsert(rows(range(12), ts=1, n=1))
    return built


def test_one_day_lists_and_opens_one_partition(table: LocalTable) -> None:
    storage = watched(table)
    found = table.read(filters=F("day") == "2026-01-03")
    assert found.num_rows == 10
    assert partitions(storage.listed) == partitions(storage.opened) == {"day=2026-01-03"}


def test_after_the_newest_write_nothing_is_listed(table: LocalTable) -> None:
    first, last = table.instants()
    storage = watched(table)
    for given in ({"begin": last}, {"begin": last, "end": last}, {"begin": "29991231000000000"}):
        nothing = table.read(query="incremental", filters=F("n") == 1, **given)
        assert (nothing.num_rows, nothing.schema) == (0, SCHEMA)
        assert table.read(["id"], query="incremental", **given).schema.names == ["id"]
    assert storage.listed == storage.opened == []
    assert table.read(query="incremental", begin=first).num_rows == 12
    table.upsert(rows(range(3), ts=2))
    assert table.read(query="incremental", begin=last).num_rows == 3
    table.rollback()
    assert table.read(query="incremental", begin=last).num_rows == 0


def test_some_days_and_something_else_of_their_rows(table: LocalTable) -> None:
    storage = watched(table)
    condition = F("day").isin(["2026-01-03", "2026-01-04", "2027-01-01"]) & (F("n") == 1)
    assert sorted(table.read(["id"], filters=condition)["id"].to_pylist()) == [2, 3, 8, 9]
    assert partitions(storage.opened) == {"day=2026-01-03", "day=2026-01-04"}


def test_a_filter_on_other_columns_reads_what_statistics_leave(table: LocalTable) -> None:
    every = table.read()
    for condition in (F("id") == 7, F("id") > 100, (F("n") == 1) & (F("id") > 9), F("x").is_null()):
        assert_same_rows(table.read(filters=condition), every.filter(condition), what=str(condition))


def test_footers_of_a_local_table_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=rows(range(1)).schema, record_key=["id"])
    table.insert(rows(range(6)))
    assert table.to_arrow(filters=F("id") == 3).num_rows == 1

    def refuse(*given: object) -> None:
        raise AssertionError(f"read again: {given}")

    monkeypatch.setattr(footers, "base_file_metadata", refuse)
    assert table.to_arrow(filters=F("id") == 3).num_rows == 1
    assert table.to_arrow(filters=F("id") > 100).num_rows == 0


def test_the_columns_of_the_filter_need_not_be_in_the_result(table: LocalTable) -> None:
    condition = (F("n") == 1) & (F("_hoodie_partition_path") == "day=2026-01-02")
    found = table.read(["ts"], filters=condition)
    assert found.to_pydict() == {"ts": [1, 1]}
    assert table.read([], filters=condition).num_rows == 2


def test_a_logged_row_is_found_though_the_base_file_has_no_such_row() -> None:
    table = made("mor")
    table.insert(rows(range(6)))
    table.upsert(rows(range(1), ts=1, n=99))
    assert table.read(["id"], filters=F("n") == 99)["id"].to_pylist() == [0]
    assert table.read(["id"], filters=(F("n") == 0) & (F("id") == 0)).num_rows == 0, "the base row that matches is replaced"
    assert table.read(["id"], filters=F("n") == 99, query="read_optimized").num_rows == 0


def test_every_kind_of_reading_has_the_rows_of_the_filter(table: LocalTable) -> None:
    first, second = table.instants()
    condition = (F("day") == "2026-01-02") & (F("id") > 1)
    for query in ({}, {"query": "read_optimized"}, {"as_of": first}, {"query": "incremental", "begin": first, "end": second}):
        assert_same_rows(table.read(filters=condition, **query), table.read(**query).filter(condition), what=str(query))


def test_a_lost_file_is_an_error_where_the_filter_looks_and_only_there(table: LocalTable) -> None:
    [lost] = [one for one in table.state.view.latest_slices("day=2026-01-03") if one.base_file is not None]
    assert lost.base_file is not None
    table.storage.delete(lost.base_file.path)
    assert table.read(filters=F("day") == "2026-01-04").num_rows == 10
    for condition in (F("day") == "2026-01-03", F("id") == 1, F("day") < "2026-01-04"):
        with pytest.raises(MissingFileError):
            table.read(filters=condition)


def test_a_partition_that_is_gone_as_a_whole_is_an_error_where_the_filter_looks(table: LocalTable) -> None:
    table.storage.delete_tree("day=2026-01-03")
    assert table.read(filters=F("day") == "2026-01-04").num_rows == 10
    with pytest.raises(MissingFileError):
        table.read(filters=F("day") == "2026-01-03")


def test_row_groups_without_a_match_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(storage=MemoryStorage(), partition_by=[])
    table.options = {"lakehouse.parquet.row.group.rows": 1_000}
    table.bulk_insert(rows(range(5_000)))
    [piece] = table.state.view.latest_slices()
    assert piece.base_file is not None
    read: list[Any] = []
    real = arrow_scan.iter_base_file

    def watch(*arguments: Any, **named: Any) -> Any:
        read.append(named["row_groups"])
        return real(*arguments, **named)

    monkeypatch.setattr(arrow_scan, "iter_base_file", watch)
    assert table.read(["id"], filters=F("id") == 4_999)["id"].to_pylist() == [4_999]
    last = base_file_metadata(table.storage, piece.base_file.path).num_row_groups - 1
    assert last > 0
    assert read == [[last]]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_rows_that_stay_where_they_are_are_found_by_what_their_columns_say(table_type: str) -> None:
    table = made(table_type)
    table.insert(rows(range(6)))
    assert not table.state.config.rows_keep_partitions
    table.options = {"hoodie.simple.index.update.partition.path": False}
    moved = rows(range(1), ts=1).set_column(2, "day", pa.array(["2026-01-05"]))
    table.upsert(moved)
    stored = table.read(meta_columns=True).filter(F("id") == 0)
    assert stored["_hoodie_partition_path"].to_pylist() == ["day=2026-01-01"], "it stays in the partition it was in"
    assert sorted(table.read(["id"], filters=F("day") == "2026-01-05")["id"].to_pylist()) == [0, 4]
    assert table.state.config.rows_keep_partitions


class InterruptedStorage(MemoryStorage):
    """Somebody else does `meanwhile` just before the timeline is listed, once."""

    meanwhile: Callable[[], object] | None = None

    def list(self, path: str = "") -> Listing:
        if path == ".hoodie" and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().list(path)


def test_a_row_that_comes_to_stay_elsewhere_between_properties_and_timeline_is_found() -> None:
    storage = InterruptedStorage()
    table = made(storage=storage)
    table.insert(rows(range(6)))
    table.options = {"hoodie.simple.index.update.partition.path": False}
    moved = rows(range(1), ts=1).set_column(2, "day", pa.array(["2026-01-05"]))
    storage.meanwhile = lambda: table.upsert(moved)
    state = TableState.load(storage)
    assert not state.config.rows_keep_partitions
    assert len(table.instants(state)) == 2, "the properties are older than the timeline"
    assert sorted(table.read(["id"], state=state, filters=F("day") == "2026-01-05")["id"].to_pylist()) == [0, 4]


def test_paths_of_a_table_that_another_writer_may_have_changed_are_not_trusted(table: LocalTable) -> None:
    path, content = next(
        (one.path, table.storage.read(one.path))
        for one in table.storage.list(".hoodie")
        if one.name.endswith((".commit", ".deltacommit"))
    )
    table.storage.overwrite(path, content.replace(b"lakehouse.writer", b"somebody.writer").replace(b"lakehouse.seal", b"somebodys.seal"))
    storage = watched(table)
    assert table.read(filters=F("day") == "2026-01-03").num_rows == 10
    assert len(partitions(storage.listed)) == DAYS
    table.options = {"lakehouse.read.trust.partition.paths": True}
    storage = watched(table)
    assert table.read(filters=F("day") == "2026-01-03").num_rows == 10
    assert partitions(storage.listed) == {"day=2026-01-03"}


@pytest.mark.parametrize("value", ["a/b", "007", "%41", "a=b", "it's", " ", "\u00e9", None, ""])
def test_values_that_paths_encode_are_found(value: str | None) -> None:
    table = made(properties={"hoodie.datasource.write.partitionpath.urlencode": "true"})
    data = rows(range(3)).set_column(2, "day", pa.array([value, "other", "A"], pa.string()))
    table.insert(data)
    condition = F("day").is_null() if value is None else F("day") == value
    assert table.read(["id"], filters=condition)["id"].to_pylist() == [0]
    assert sorted(table.read(["id"], filters=~condition)["id"].to_pylist()) == [1, 2]


def test_a_value_that_looks_like_the_next_directory_is_found() -> None:
    table = made(partition_by=["day", "n"], properties={"hoodie.datasource.write.partitionpath.urlencode": "false"})
    table.insert(rows(range(2)).set_column(2, "day", pa.array(["a/n=1", "b"])))
    assert table.state.view.partitions() == ["day=a/n=1/n=0", "day=b/n=0"]
    assert table.read(["id"], filters=F("day") == "a/n=1")["id"].to_pylist() == [0]


@pytest.mark.parametrize("filters", ["day = '2026-01-01'", [("day", "=", "x")], pa.scalar(True)])
def test_what_is_no_expression_is_refused(filters: Any, tmp_path: Path) -> None:
    table = _on_disk(tmp_path)
    with pytest.raises(OptionError, match="filters is a pyarrow expression"):
        table.to_arrow(filters=filters)


def test_the_facade_takes_filters_and_refuses_those_that_do_not_fit(tmp_path: Path) -> None:
    table = _on_disk(tmp_path)
    assert table.to_arrow(["id"], filters=F("id") < 2).num_rows == 2
    with pytest.raises(OptionError, match=r"No match for FieldRef.Name\(nope\)"):
        table.to_arrow(filters=F("nope") == 1)


def _on_disk(folder: Path) -> HoodieTable:
    lakehouse = Lakehouse(str(folder))
    lakehouse.create_schema("a")
    table = lakehouse.create_table("a.t", schema=SCHEMA, record_key=["id"], partition_by=["day"])
    table.insert(rows(range(6)))
    return table


CONDITIONS = [
    F("day") == "2026-01-02",
    F("day") != "2026-01-02",
    ~(F("day") < "2026-01-03"),
    F("day").is_null(),
    F("day").isin(["2026-01-01", "2026-01-05"]) | (F("n") > 8),
    F("n") > 7,
    F("n") <= 1,
    F("n").is_null() & (F("day") > "2026-01-02"),
    F("x") > 0.5,
    ~(F("x") > 0.5),
    pc.is_nan(F("x")),
    F("x") != 1.0,
    pc.coalesce(F("n") > 100, pc.scalar(True)),
    (F("_hoodie_commit_time") > "2") & (F("id") == 3),
]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("seed", range(2))
def test_over_a_random_history_filtered_readings_have_the_rows_of_the_filter(table_type: str, seed: int) -> None:
    dice = random.Random(f"{table_type} {seed}")
    table = made(table_type, MemoryStorage())
    table.options = {"hoodie.parquet.small.file.limit": dice.choice([0, 10**8])}

    def batch(ts: int) -> pa.Table:
        ids = dice.sample(range(30), dice.randint(1, 12))
        return pa.table(
            {
                "id": ids,
                "ts": [ts] * len(ids),
                "day": [dice.choice([*(f"2026-01-0{one}" for one in range(1, 6)), None, ""]) for _ in ids],
                "n": [dice.choice([*range(10), None]) for _ in ids],
                "x": [dice.choice([0.0, -0.0, 1.0, float("nan"), float("inf"), None]) for _ in ids],
            },
            schema=SCHEMA,
        )

    table.insert(batch(0))
    for ts in range(1, 7):
        table.upsert(batch(ts))
        if dice.random() < 0.4:
            table.delete(batch(ts).select(["id", "day"]).slice(0, 2))
        if dice.random() < 0.3 and table_type == "mor":
            table.compact()
        state = table.state
        times = table.instants(state)
        changes = {"query": "incremental", "begin": dice.choice(times)}
        for query in ({}, {"as_of": dice.choice(times)}, changes, {"query": "read_optimized"}):
            every = table.read(meta_columns=True, state=state, **query)
            for condition in dice.sample(CONDITIONS, 3):
                found = table.read(meta_columns=True, state=state, filters=condition, **query)
                assert_same_rows(found, every.filter(condition), what=f"{query} where {condition}")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_another_program_left_elsewhere_is_found_also_when_its_commit_is_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], ordering_fields=["ts"], table_type=table_type
    )
    table.insert(rows(range(DAYS)))
    moved = rows(range(1), ts=1).set_column(SCHEMA.get_field_index("day"), "day", pa.array(["2026-01-04"]))
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_signed", lambda metadata: metadata)
        patched.setattr(operation._Steps, "_tell_readers", lambda self: None)
        theirs = table.upsert(moved, options={"hoodie.simple.index.update.partition.path": "false"})
    expected = table.to_arrow().filter(F("day") == "2026-01-04")
    assert expected.num_rows == 2
    assert_same_rows(table.to_arrow(filters=F("day") == "2026-01-04"), expected, what="active")
    short = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    for number in range(6):
        table.upsert(rows(range(100 + number, 101 + number), days=1), options=short)
    HoodieTable.open(table.path, options=short).archive(min_commits=2, max_commits=3)
    assert theirs.instant not in [instant.requested_time for instant in table.timeline]
    assert_same_rows(table.to_arrow(filters=F("day") == "2026-01-04"), expected, what="archived")


def test_what_another_program_left_elsewhere_is_found_when_its_commit_goes_with_its_savepoint(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    table.insert(rows(range(DAYS)))
    moved = rows(range(1), ts=1).set_column(2, "day", pa.array(["2026-01-04"]))
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_signed", lambda metadata: metadata)
        patched.setattr(operation._Steps, "_tell_readers", lambda self: None)
        table.options = {"hoodie.simple.index.update.partition.path": False}
        theirs = table.upsert(moved)
    table.options = {}
    create_savepoint(table.storage, name="n", lock_timeout_ms=60_000)
    for number in range(6):
        table.insert(rows(range(100 + number, 101 + number), days=1))
    passing = [one for one in table.state.timeline.completed().writes() if one.requested_time != theirs.instant]
    execute_archive(table.state, passing[:-2], ArchiveOptions(merges=False))  # as Hudi's archiver passes by what is savepointed
    assert theirs.instant in table.instants()
    delete_savepoint(table.storage, "n", lock_timeout_ms=60_000)
    assert theirs.instant not in table.instants()
    assert sorted(table.read(["id"], filters=F("day") == "2026-01-04")["id"].to_pylist()) == [0, 3]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us", tz="UTC"), [-62_135_596_800_000_001, 0, 253_402_300_800_000_000]),
        (pa.date32(), [-719_163, 0, 2_932_897]),
    ],
    ids=str,
)
def test_bounds_outside_of_the_years_that_python_knows_rule_files_out_too(tmp_path: Path, kind: pa.DataType, values: list[int]) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", kind), ("day", pa.string())])
    moments = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"], partition_by=["day"])
    for number, (early, late) in enumerate([(0, 1), (2, 2)]):
        found = pa.array([moments[early], moments[late]], kind)
        table.bulk_insert(pa.table([[number * 2, number * 2 + 1], found, [str(number)] * 2], schema=schema))
    every = table.to_arrow()
    for moment in moments:
        for filters in (F("at") == moment, F("at") >= moment, F("at") < moment):
            assert_same_rows(table.to_arrow(filters=filters), every.filter(filters))
    (lost,) = Path(table.path).glob("day=0/*.parquet")
    lost.unlink()
    assert table.to_arrow(filters=F("at") >= moments[2]).column("id").to_pylist() == [2, 3]
