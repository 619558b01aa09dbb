"""The record index finds what a look through all files finds, and refuses what is not where it says."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import OptionError, RecordIndexError
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, location_payloads
from lakehouse_engine.index import lookup
from lakehouse_engine.index.base import Found, KeyedRows
from lakehouse_engine.index.record_level import RecordLevelIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.index.simple import KeyColumnIndex, MetaColumnKeys
from lakehouse_engine.metadata_table import answers
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.batch.stage import Stage
from lakehouse_engine.write.batches import EVERY_ROW, Batches
from lakehouse_engine.write.context import prepare
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.locate import logged, tagging
from lakehouse_engine.write.locate.settle import SliceHits, settle
from lakehouse_engine.write.locate.tagging import find_hits
from lakehouse_engine.write.locate.target import Target, Write
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.fixtures import EVERY_VERSION, spark_fixtures, unpack_spark_fixture
from tests.support.metadata_tables import BUILD, MetadataTableBuilder, put_block

INDEXED = [name for name in spark_fixtures(EVERY_VERSION) if name.endswith(("_metadata", "_metadata_nonpartitioned"))]
LATER = "29990101000000000"
GROUP = "record-index-0000-0"
GLOBAL = RecordLevelIndex(is_global=True)
ONE = LocalRunner(1)


def keys_of(state: TableState) -> list[str]:
    """Every key of the record index."""
    return sorted(key for part in answers.all_record_locations(MetadataTable.open(state)) for key in part.column("key").to_pylist())


def batch_of(keys: list[str], paths: dict[str, list[int]] | None = None) -> KeyedRows:
    rows = paths if paths is not None else {"": list(range(len(keys)))}
    return KeyedRows(pa.array(keys, pa.string()), {path: np.array(numbers, np.int64) for path, numbers in rows.items()})


def told(found: Found) -> list[tuple[str, list[int], list[int]]]:
    return [(one.base.path, one.positions.tolist(), one.rows.tolist()) for one in found.tagged]


@pytest.mark.parametrize("name", [name for name in INDEXED if "/cow" in name])
def test_keys_are_found_as_by_a_look_through_all_files(name: str, tmp_path: Path) -> None:
    state = TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path))))
    keys = [*keys_of(state)[::-1], "absent", "id:absent"]
    batch = batch_of(keys)
    plain = KeyColumnIndex(is_global=True, use_bloom=False)
    by_index, by_files = (one.find(state.storage, state.view, batch, MetaColumnKeys(), ONE) for one in (GLOBAL.of(state), plain))
    assert by_index.exact
    assert told(by_index) == told(by_files) != []
    placed = {piece.base_file.path: rows for piece, rows in by_index.places if piece.base_file is not None}
    assert {path: np.sort(rows).tolist() for path, _, rows in told(by_index)} == {path: rows.tolist() for path, rows in placed.items()}  # type: ignore[union-attr]


def hits_of(state: TableState, rows: pa.Table, index_type: str) -> list[SliceHits]:
    """Where the rows of an upsert are stored."""
    options = WriteOptions.read({"hoodie.index.type": index_type})
    request = WriteRequest(WriteOperationType.UPSERT, ArrowInput(rows), options)
    context = prepare(state, request)
    with Stage(state.storage) as stage:
        batches = Batches.of(request, context, stage)
        batch = EVERY_ROW.of(batches.source(LATER))
        write = Write(batches.effect, context, context.files(LATER), Target.of(state, context))
        return find_hits(write, batch, ONE, ordered=True)


@pytest.mark.parametrize("name", [name for name in INDEXED if "/mor" in name])
def test_an_index_of_hudi_that_may_lack_rows_is_not_asked(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Hudi deleted a key in a log there, and wrote it again with a SIMPLE index: its record index lacks the key."""
    folder = unpack_spark_fixture(name, tmp_path)
    state = TableState.load(LocalStorage(str(folder)))
    rows = HoodieTable.open(str(folder)).to_arrow()
    rows = rows.select([one for one in rows.column_names if not one.startswith("_hoodie")])

    def alive(index_type: str) -> list[tuple[str, int, int]]:
        found = hits_of(state, rows, index_type)
        return sorted(
            (hits.piece.file_id, int(position), int(row))
            for hits in found
            for position, row, lives in zip(hits.positions, hits.rows, hits.alive, strict=True)
            if lives
        )

    assert alive("RECORD_INDEX") == alive("GLOBAL_SIMPLE")
    assert "another program deleted rows in logs" in caplog.text
    assert len(keys_of(state)) < rows.num_rows
    assert len(alive("RECORD_INDEX")) == rows.num_rows


@pytest.mark.parametrize("name", INDEXED[:1])
def test_only_the_files_that_it_names_are_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path))))
    opened: list[str] = []
    read = lookup.read_footer

    def noted(storage: LocalStorage, base: BaseFile) -> object:
        opened.append(base.path)
        return read(storage, base)

    monkeypatch.setattr(lookup, "read_footer", noted)
    key = keys_of(state)[0]
    found = GLOBAL.of(state).find(state.storage, state.view, batch_of([key, "absent"]), MetaColumnKeys(), ONE)
    assert opened == [one.base.path for one in found.tagged]
    assert len(opened) == 1 < len(state.view.latest_slices())


# A table of this engine with a record index that a test writes.

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])


def written(storage: MemoryStorage, operation: WriteOperationType, rows: dict[str, int], **options: str) -> None:
    data = ArrowInput(pa.table({"id": list(rows), "v": list(rows.values())}, schema=SCHEMA))
    execute_write(storage, WriteRequest(operation, data, WriteOptions.read(options)), ONE)


def table_of(*files: dict[str, int], table_type: str = "cow") -> MemoryStorage:
    """A table with one file for each of `files`."""
    storage = MemoryStorage()
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=("id",), table_type=table_type))
    for rows in files:
        written(storage, WriteOperationType.BULK_INSERT, rows)
    return storage


def indexed(storage: MemoryStorage, places: dict[str, str], *, knows: bool = True) -> TableState:
    """The table's state with a record index that has each key in a file group. `knows`: it has every instant of the table."""
    times = [one.requested_time for one in TableState.load(storage).timeline.completed()]
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    table = pa.table([[""] * len(places), list(places.values()), [0] * len(places)], schema=LOCATIONS)
    builder.base(GROUP, pa.array(list(places), pa.string()), location_payloads(table))
    builder.publish(BUILD)
    for time in times if knows else times[:-1]:
        builder.publish(time)
    return TableState.load(storage)


def groups(storage: MemoryStorage) -> dict[str, str]:
    """File group of each stored key."""
    rows = HoodieTable(storage).to_arrow(columns=["_hoodie_record_key", "_hoodie_file_name"])
    return {key: file.partition("_")[0] for key, file in zip(*(column.to_pylist() for column in rows.columns), strict=True)}


def found(state: TableState, *keys: str) -> Found:
    return GLOBAL.of(state).find(state.storage, state.view, batch_of(list(keys)), MetaColumnKeys(), ONE)


def test_a_key_of_a_file_group_that_is_not_there_is_an_error() -> None:
    storage = table_of({"a": 1}, {"b": 2})
    state = indexed(storage, groups(storage) | {"b": "00000000-0000-0000-0000-000000000000-0"})
    assert [one.rows.tolist() for one in found(state, "a", "c").tagged] == [[0]]
    with pytest.raises(RecordIndexError, match=r"places the key 'b' into the file group 00000000.* which the table does not have") as error:
        found(state, "a", "b")
    assert (error.value.context["table"], error.value.context["key"]) == ("t", "b")
    assert "lakehouse metadata rebuild" in str(error.value)


def test_a_key_that_the_named_file_does_not_have_is_an_error() -> None:
    storage = table_of({"a": 1}, {"b": 2})
    state = indexed(storage, groups(storage) | {"b": groups(storage)["a"], "x": groups(storage)["a"]})
    for key in ("b", "x"):
        with pytest.raises(RecordIndexError, match=rf"places the key '{key}' into the file group .* no row or deletion of that key"):
            found(state, "a", key)


def test_a_key_that_neither_file_nor_logs_have_is_an_error_and_a_deleted_one_is_none() -> None:
    storage = table_of({"a": 1, "b": 2, "c": 3}, table_type="mor")
    written(storage, WriteOperationType.UPSERT, {"b": 5})
    written(storage, WriteOperationType.DELETE, {"c": 0})
    group = groups(storage)["a"]
    state = indexed(storage, dict.fromkeys("abcx", group))
    assert [piece.log_files != () for piece in state.view.latest_slices()] == [True]

    def hits(*keys: str) -> list[tuple[int, bool]]:
        made = hits_of(state, pa.table({"id": list(keys), "v": [0] * len(keys)}, schema=SCHEMA), "RECORD_INDEX")
        return sorted((int(row), bool(lives)) for one in made for row, lives in zip(one.rows, one.alive, strict=True))

    assert hits("new", "a", "b", "c") == [(1, True), (2, True), (3, False)]
    with pytest.raises(RecordIndexError, match="places the key 'x' into the file group"):
        hits("a", "x")


def test_a_slice_whose_logs_may_have_new_keys_is_read_for_the_keys_that_it_is_named_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in tables of writers that put new rows into logs: here the commits of the logs are not on the timeline."""
    storage = table_of({"a": 1, "b": 2}, {"c": 3, "d": 4}, table_type="mor")
    written(storage, WriteOperationType.UPSERT, {"b": 5, "d": 6})
    state = indexed(storage, groups(storage) | {"x": groups(storage)["a"]})
    monkeypatch.setattr(logged.SliceLogs, "may_insert", lambda self, piece: True)
    asked: list[list[str]] = []
    monkeypatch.setattr(tagging, "settle", lambda task: (asked.append(task.keys.to_pylist()), settle(task))[1])

    def rows_of(*keys: str) -> list[int]:
        made = hits_of(state, pa.table({"id": list(keys), "v": [0] * len(keys)}, schema=SCHEMA), "RECORD_INDEX")
        return sorted(int(row) for one in made for row in one.rows)

    assert rows_of("new", "b") == [1]
    assert asked == [["b"]]
    with pytest.raises(RecordIndexError, match="places the key 'x'"):
        rows_of("d", "x")


def test_without_an_index_that_knows_every_instant_all_files_are_asked(caplog: pytest.LogCaptureFixture) -> None:
    storage = table_of({"a": 1}, {"b": 2})
    wrong = dict.fromkeys("ab", "00000000-0000-0000-0000-000000000000-0")
    for state, why in (
        (TableState.load(storage), "the table has no metadata table"),
        (indexed(storage, wrong, knows=False), "the metadata table does not know of"),
    ):
        caplog.clear()
        index = GLOBAL.of(state)
        for _ in range(2):
            result = index.find(state.storage, state.view, batch_of(["b", "x"]), MetaColumnKeys(), ONE)
            assert ([one.rows.tolist() for one in result.tagged], result.exact) == ([[0]], False)
        assert [why in record.message for record in caplog.records if record.levelno == logging.WARNING] == [True]


def test_a_table_without_rows_needs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert found(TableState.load(table_of()), "a").tagged == []
    assert caplog.records == []


def test_delta_commits_that_are_completed_after_the_index_is_fixed_do_not_count() -> None:
    storage = table_of({"a": 1}, {"b": 2})
    state = indexed(storage, groups(storage))
    fixed, later = GLOBAL.of(state), GLOBAL.of(state)
    fixed.fix()
    builder = MetadataTableBuilder(storage)
    moved = pa.table([[""], ["00000000-0000-0000-0000-000000000000-0"], [0]], schema=LOCATIONS)
    builder.log(GROUP, 1, put_block(LATER, pa.array(["a"]), location_payloads(moved)), instant=LATER)
    builder.publish(LATER)
    batch = batch_of(["a"])
    assert [one.rows.tolist() for one in fixed.find(storage, state.view, batch, MetaColumnKeys(), ONE).tagged] == [[0]]
    with pytest.raises(RecordIndexError):
        later.find(storage, state.view, batch, MetaColumnKeys(), ONE)


def test_a_copy_in_another_process_asks_all_files() -> None:
    storage = table_of({"a": 1})
    state = indexed(storage, {"a": "00000000-0000-0000-0000-000000000000-0"})
    sent = pickle.loads(pickle.dumps(GLOBAL.of(state)))
    assert (sent.is_global, sent.told) == (True, None)
    assert [one.rows.tolist() for one in sent.find(storage, state.view, batch_of(["a"]), MetaColumnKeys(), ONE).tagged] == [[0]]


def test_an_index_with_one_place_for_a_key_is_not_asked_for_each_partition(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = next(name for name in INDEXED if name.endswith("cow_metadata"))
    state = TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path))))
    keys = keys_of(state)
    paths = {path: list(range(len(keys))) for path in state.live_partitions()}
    asked = RecordLevelIndex(is_global=False).of(state).find(state.storage, state.view, batch_of(keys, paths), MetaColumnKeys(), ONE)
    assert not asked.exact
    assert "one place for a key" in caplog.text


def test_an_index_of_each_partition_finds_the_key_there_and_a_global_one_everywhere() -> None:
    storage, schema = MemoryStorage(), pa.schema([("id", pa.string()), ("p", pa.string())])
    create_table(storage, TableSpec(name="t", schema=schema, record_key=("id",), partition_by=("p",)))
    for part in ("x", "y"):
        data = ArrowInput(pa.table({"id": ["a", part], "p": [part] * 2}, schema=schema))
        execute_write(storage, WriteRequest(WriteOperationType.BULK_INSERT, data, WriteOptions()), ONE)
    times = [one.requested_time for one in TableState.load(storage).timeline.completed()]
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    for piece in TableState.load(storage).view.latest_slices():
        keys = ["a", piece.partition_path[-1]]
        table = pa.table([[piece.partition_path] * 2, [piece.file_id] * 2, [0] * 2], schema=LOCATIONS)
        builder.base(f"record-index-p%3D{keys[1]}-0000-0", pa.array(keys), location_payloads(table))
    for time in (BUILD, *times):
        builder.publish(time)
    state = TableState.load(storage)
    batch = batch_of(["a", "a", "x", "y", "y"], {"p=x": [0, 3], "p=y": [1, 4], "p=z": [2]})

    def found_in(*, is_global: bool) -> dict[str, list[int]]:
        result = RecordLevelIndex(is_global).of(state).find(storage, state.view, batch, MetaColumnKeys(), ONE)
        assert result.exact
        return {one.base.partition_path: sorted(one.rows.tolist()) for one in result.tagged}

    assert found_in(is_global=False) == {"p=x": [0], "p=y": [1, 4]}
    assert found_in(is_global=True) == {"p=x": [0, 2], "p=y": [0, 3]}, "the first of equal keys"


@pytest.mark.parametrize(("named", "is_global"), [("RECORD_INDEX", True), ("record_level", True), ("RECORD_LEVEL_INDEX", False)])
def test_names_of_the_index(named: str, is_global: bool) -> None:
    index = load_index(TableState.load(table_of({"a": 1})), WriteOptions.read({"hoodie.index.type": named}))
    assert isinstance(index, RecordLevelIndex)
    assert index.is_global is is_global


def test_a_table_without_record_key_has_no_record_index() -> None:
    with pytest.raises(OptionError, match="a record index needs a table with record key fields"):
        create_table(MemoryStorage(), TableSpec(name="t", schema=SCHEMA, properties={"hoodie.index.type": "RECORD_INDEX"}))
