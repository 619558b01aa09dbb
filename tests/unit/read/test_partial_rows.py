"""Blocks of logs whose rows have some of the columns (table versions 8 and 9), against a reference that takes one row after the other, as
Hudi 1.2 does; and what compactions make of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.commit.concurrency.attempts import open_file
from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.files.log_scanner import LogScope, has_partial_rows
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns, without_columns
from lakehouse_engine.format.file_names import parse_base_file, parse_log_file
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block, render_parquet_block
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, FileGroupId
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.tasks.base_files import FileContext
from tests.unit.read.hand_made import PARTITION, instant

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
AVRO = with_meta_columns(table_avro_schema("t", SCHEMA))
ALL = ("a", "b")
BASE_TIME = instant(1)
MODES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")


class Row(NamedTuple):
    """`values` are those of the columns a and b that the row has. `time` is its commit."""

    key: str
    ts: int
    values: dict[str, Any]
    time: str = ""


class Delete(NamedTuple):
    key: str
    ts: int | None


Event = Row | Delete


def rows_with(names: Sequence[str]) -> st.SearchStrategy[list[Row]]:
    numbers = {"a": st.none() | st.integers(0, 9), "b": st.none() | st.sampled_from("xyz")}
    values = st.fixed_dictionaries({name: numbers[name] for name in names})
    return st.lists(st.builds(Row, st.sampled_from("abcde"), st.integers(0, 4), values), min_size=1, max_size=4)


DELETES = st.lists(st.builds(Delete, st.sampled_from("abcde"), st.none() | st.integers(0, 4)), min_size=1, max_size=3)
BLOCK = st.sampled_from([(), ("a",), ("b",), ALL]).flatmap(rows_with) | DELETES
BASE = rows_with(ALL).map(lambda rows: list({row.key: row for row in rows}.values()))


def reference(mode: str, base: Sequence[Row], blocks: Sequence[Sequence[Event]]) -> list[Row]:
    by_event_time = mode == MODES[0]
    state: dict[str, Event] = {}
    for number, block in enumerate(blocks, 2):
        for event in block:
            event = event._replace(time=instant(number)) if isinstance(event, Row) else event
            state[event.key] = after(state.get(event.key), event, by_event_time)
    rows = []
    for row in base:
        offered, stored = state.pop(row.key, None), row._replace(time=BASE_TIME)
        rows.append(stored if offered is None else after(stored, offered, by_event_time))
    return [row for row in [*rows, *state.values()] if isinstance(row, Row)]


def after(held: Event | None, event: Event, by_event_time: bool) -> Event:
    """What a key is once it was `held` and `event` came."""
    if held is None:
        return event
    if by_event_time and event.ts is not None:
        stays = isinstance(event, Delete) if held.ts is None else held.ts > event.ts
    else:
        stays = False
    newer, older = (held, event) if stays else (event, held)
    return newer._replace(values={**older.values, **newer.values}) if isinstance(newer, Row) and isinstance(older, Row) else newer


def stored(rows: Sequence[Row], time: str, names: Sequence[str] = ALL) -> pa.Table:
    meta = [{COMMIT_TIME: time, "_hoodie_record_key": row.key, "_hoodie_partition_path": PARTITION} for row in rows]
    user = [{"id": row.key, "ts": row.ts, **row.values} for row in rows]
    schema = pa.schema([*[pa.field(name, pa.string()) for name in META_COLUMNS], *(SCHEMA.field(name) for name in ("id", "ts", *names))])
    return pa.Table.from_pylist([{**left, **right} for left, right in zip(meta, user, strict=True)], schema)


def log_block(time: str, events: Sequence[Event], *, parquet: bool = False, without: Sequence[str] = ()) -> bytes:
    header: dict[int, str] = {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: AVRO}
    if isinstance(events[0], Delete):
        keys, ordering = pa.array([event.key for event in events]), pa.array([event.ts for event in events], pa.int64())
        return render_block(BlockType.DELETE, header, encode_delete_content(keys, pa.array([PARTITION] * len(events)), ordering))
    absent = {*without, *(name for name in ALL if name not in events[0].values)}
    rows = stored([row for row in events if isinstance(row, Row)], time, [name for name in ALL if name not in absent])
    rows = rows.drop_columns([name for name in without if name in rows.column_names])
    if absent:
        header |= {HeaderKey.SCHEMA: without_columns(AVRO, absent), HeaderKey.IS_PARTIAL: "true"}
    if parquet:
        return render_block(BlockType.PARQUET_DATA, header, render_parquet_block(rows))
    return render_block(BlockType.AVRO_DATA, header, render_avro_block(header[HeaderKey.SCHEMA], rows))


def slice_of(storage: MemoryStorage, base: Sequence[Row], contents: Sequence[bytes]) -> LoggedSlice:
    file = BaseFile(PARTITION, "a-0", "0-1-2", BASE_TIME)
    sink = pa.BufferOutputStream()
    pq.write_table(stored(base, BASE_TIME), sink, row_group_size=3)
    storage.overwrite(file.path, sink.getvalue().to_pybytes())
    logs, promises = [], []
    for number, content in enumerate(contents, 1):
        log = LogFile(PARTITION, "a-0", BASE_TIME, number, "0-1-0")
        storage.overwrite(log.path, content)
        logs.append(replace(log, size=len(content)))
        promises.append(LogPromise(log.path, instant(number + 1), 0, len(content)))
    size = len(storage.read(file.path))
    return LoggedSlice(FileSlice(FileGroupId(PARTITION, "a-0"), BASE_TIME, replace(file, size=size), tuple(logs)), tuple(promises))


def reader_of(storage: MemoryStorage, mode: str, **more: str) -> SliceReader:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.record.merge.mode": mode,
        **more,
    }
    times = frozenset(instant(number) for number in range(1, 20))
    return SliceReader(storage, SCHEMA, MergeRules.of(TableConfig(properties), SCHEMA), LogScope(times, BASE_TIME))


def read_all(reader: SliceReader, piece: LoggedSlice) -> list[Any]:
    return of_table(reader.read(piece, [COMMIT_TIME, *SCHEMA.names]))


def of_table(table: pa.Table) -> list[Any]:
    return sorted(table.select([COMMIT_TIME, *SCHEMA.names]).to_pylist(), key=str)


def of_rows(rows: Sequence[Row]) -> list[Any]:
    made = [{COMMIT_TIME: row.time, "id": row.key, "ts": row.ts, **{name: row.values.get(name) for name in ALL}} for row in rows]
    return sorted(made, key=str)


def context_of(storage: MemoryStorage, logs: str = "PARQUET") -> FileContext:
    storage.overwrite(open_file(instant(15)), b"")
    return FileContext(storage, instant(15), SCHEMA, AVRO, WriteOptions(log_block_format=logs))


def log_compacted(reader: SliceReader, piece: LoggedSlice, logs: str = "PARQUET") -> LoggedSlice:
    """The slice with one log in the place of all of its logs."""
    storage = reader.storage
    assert isinstance(storage, MemoryStorage)
    stat = compact_logs(LogCompactTask(context_of(storage, logs), 0, reader, piece, 1 << 20))
    assert stat.path is not None
    log = replace(parse_log_file(PARTITION, stat.path.rpartition("/")[2]), size=len(storage.read(stat.path)))
    promise = LogPromise(log.path, instant(15), 0, log.size)
    return LoggedSlice(replace(piece.slice, log_files=(log,)), (promise,))


@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=60)
@given(base=BASE, blocks=st.lists(BLOCK, max_size=5))
def test_a_slice_has_the_rows_of_the_reference(mode: str, base: list[Row], blocks: list[list[Event]]) -> None:
    storage = MemoryStorage()
    reader = reader_of(storage, mode)
    piece = slice_of(storage, base, [log_block(instant(number), block) for number, block in enumerate(blocks, 2)])
    expected = of_rows(reference(mode, base, blocks))
    assert read_all(reader, piece) == expected
    assert sorted(reader.read(piece, ["a"]).column("a").to_pylist(), key=str) == sorted((row["a"] for row in expected), key=str)
    changes = reader.changes(piece, [COMMIT_TIME, *SCHEMA.names])
    kept = np.setdiff1d(np.arange(len(base)), changes.removed)
    assert sorted([*of_table(changes.added), *of_rows([base[row]._replace(time=BASE_TIME) for row in kept])], key=str) == expected


@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=40)
@given(base=BASE, blocks=st.lists(BLOCK, min_size=1, max_size=5), logs=st.sampled_from(["AVRO", "PARQUET"]))
def test_what_compactions_make_has_the_same_rows(mode: str, base: list[Row], blocks: list[list[Event]], logs: str) -> None:
    storage = MemoryStorage()
    reader = reader_of(storage, mode)
    piece = slice_of(storage, base, [log_block(instant(number), block) for number, block in enumerate(blocks, 2)])
    expected = read_all(reader, piece)
    assert read_all(reader, log_compacted(reader, piece, logs)) == expected
    stat = compact_slice(CompactTask(context_of(storage), 1, reader, piece, 1 << 20))
    assert stat.path is not None
    file = parse_base_file(PARTITION, stat.path.rpartition("/")[2])
    compacted = replace(piece.slice, base_file=replace(file, size=len(storage.read(file.path))), log_files=())
    assert read_all(reader, LoggedSlice(compacted)) == expected


@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=60)
@given(base=BASE, blocks=st.lists(rows_with(ALL) | DELETES, min_size=1, max_size=5))
def test_nulls_are_filled_where_the_table_says_so(mode: str, base: list[Row], blocks: list[list[Event]]) -> None:
    """`hoodie.table.partial.update.mode` of version 9: a null does what a column does that is not there."""
    storage = MemoryStorage()
    reader = reader_of(storage, mode, **{"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"})
    piece = slice_of(storage, base, [log_block(instant(number), block) for number, block in enumerate(blocks, 2)])
    expected = of_rows(reference(mode, without_nulls(base), [without_nulls(block) for block in blocks]))
    assert read_all(reader, piece) == expected
    assert read_all(reader, log_compacted(reader, piece)) == expected


def without_nulls(events: Sequence[Any]) -> list[Any]:
    def bare(row: Row) -> Row:
        return row._replace(values={name: value for name, value in row.values.items() if value is not None})

    return [bare(event) if isinstance(event, Row) else event for event in events]


FULL = Row("k", 3, {"a": 1, "b": "x"})


@pytest.mark.parametrize("parquet", [False, True])
@pytest.mark.parametrize(
    ("mode", "blocks", "expected"),
    [
        pytest.param(MODES[0], [[Row("k", 3, {"a": 7})]], (3, 7, "x", 2), id="an absent column keeps its value"),
        pytest.param(MODES[0], [[Row("k", 3, {"a": None})]], (3, None, "x", 2), id="a null is a value"),
        pytest.param(MODES[0], [[Row("k", 2, {"a": 7})]], (3, 1, "x", 1), id="an older one is ignored whole"),
        pytest.param(MODES[1], [[Row("k", 2, {"a": 7})]], (2, 7, "x", 2), id="by commit time none is older"),
        pytest.param(MODES[0], [[Row("k", 3, {"a": 7})], [Row("k", 4, {"b": "y"})]], (4, 7, "y", 3), id="one after the other"),
        pytest.param(MODES[0], [[Row("k", 5, {"a": 7})], [Row("k", 4, {"b": "y"})]], (5, 7, "y", 2), id="an older one fills a newer one"),
        pytest.param(MODES[0], [[Row("k", 5, {"a": 7})], [Row("k", 4, {"a": 8})]], (5, 7, "x", 2), id="an older one takes nothing"),
        pytest.param(MODES[0], [[Row("k", 4, {"a": 7})], [Delete("k", None)]], None, id="a deletion takes it"),
        pytest.param(MODES[0], [[Row("k", 4, {"a": 7})], [Delete("k", 3)]], (4, 7, "x", 2), id="an older deletion does not"),
        pytest.param(MODES[0], [[Delete("k", 4)], [Row("k", 3, {"a": 7})]], None, id="older than a deletion"),
        pytest.param(MODES[0], [[Row("k", 4, {"a": 7, "b": "z"})], [Row("k", 4, {"b": "y"})]], (4, 7, "y", 3), id="after a whole row"),
    ],
)
def test_rules_of_partial_rows(
    mode: str, blocks: list[list[Event]], expected: tuple[int, int | None, str, int] | None, parquet: bool
) -> None:
    storage = MemoryStorage()
    contents = [log_block(instant(number), block, parquet=parquet) for number, block in enumerate(blocks, 2)]
    reader, piece = reader_of(storage, mode), slice_of(storage, [FULL], contents)
    rows = [] if expected is None else [Row("k", expected[0], dict(zip(ALL, expected[1:3], strict=True)), instant(expected[3]))]
    assert read_all(reader, piece) == of_rows(rows)


def test_columns_of_a_new_key_that_nobody_has_are_null() -> None:
    storage = MemoryStorage()
    piece = slice_of(storage, [FULL], [log_block(instant(2), [Row("new", 1, {"a": 7})])])
    assert read_all(reader_of(storage, MODES[0]), piece)[1] == of_rows([Row("new", 1, {"a": 7}, instant(2))])[0]


@pytest.mark.parametrize("logs", ["AVRO", "PARQUET"])
def test_a_log_compaction_leaves_out_what_its_rows_do_not_have(logs: str) -> None:
    storage = MemoryStorage()
    blocks = [[Row("k", 4, {"a": 7})], [Row("m", 4, {"b": "y"})], [Row("n", 4, {"a": 1, "b": "z"})]]
    reader = reader_of(storage, MODES[0])
    piece = slice_of(storage, [FULL], [log_block(instant(number), block) for number, block in enumerate(blocks, 2)])
    (log,) = log_compacted(reader, piece, logs).slice.log_files
    found = [(block.is_partial, block.schema) for block in read_blocks(storage.read(log.path))]
    assert sorted(found) == sorted([(True, without_columns(AVRO, ["b"])), (True, without_columns(AVRO, ["a"])), (False, AVRO)])


def test_rows_without_the_value_that_orders_them_are_refused() -> None:
    storage = MemoryStorage()
    piece = slice_of(storage, [FULL], [log_block(instant(2), [Row("k", 4, {"a": 7})], without=["ts"])])
    with pytest.raises(UnsupportedTableError, match="not 'ts', by which rows are merged"):
        read_all(reader_of(storage, MODES[0]), piece)
    by_commit = reader_of(storage, MODES[1])
    assert read_all(by_commit, piece) == of_rows([Row("k", 3, {"a": 7, "b": "x"}, instant(2))])


def test_of_a_whole_slice_what_was_logged_before_the_range_counts() -> None:
    storage = MemoryStorage()
    contents = [log_block(instant(2), [Row("k", 4, {"a": 7})]), log_block(instant(3), [Row("k", 5, {"b": "y"})])]
    piece, reader = slice_of(storage, [FULL], contents), reader_of(storage, MODES[0])
    scope = replace(reader.scope, window=InstantRange(instant(2), instant(3)), until=InstantRange(None, instant(3)))
    ranged = replace(reader, scope=scope)
    assert read_all(ranged, piece) == of_rows([Row("k", 5, {"a": 1, "b": "y"}, instant(3))])
    assert read_all(ranged, replace(piece, whole=True)) == of_rows([Row("k", 5, {"a": 7, "b": "y"}, instant(3))])


def test_which_logs_have_partial_rows() -> None:
    storage = MemoryStorage()
    contents = [log_block(instant(2), [FULL]), log_block(instant(3), [Row("k", 5, {"b": "y"})]), log_block(instant(4), [Delete("k", 1)])]
    logs = slice_of(storage, [FULL], contents).slice.log_files
    assert [has_partial_rows(storage, log) for log in logs] == [False, True, False]
    assert not has_partial_rows(storage, replace(logs[1], version=9))
