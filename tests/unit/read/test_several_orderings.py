"""Tables of version 9 with several ordering fields: rows and deletions of logs compare by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.commit.concurrency.attempts import open_file
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns
from lakehouse_engine.format.file_names import parse_log_file
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block, encode_delete_content
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, FileGroupId
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.tasks.base_files import FileContext
from tests.unit.read.hand_made import PARTITION, instant

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("seq", pa.int64())])
STORED = pa.schema([*[pa.field(name, pa.string()) for name in META_COLUMNS], *SCHEMA])
AVRO = with_meta_columns(table_avro_schema("t", SCHEMA))
BASE_TIME = instant(1)

Place = tuple[str, int]


class Row(NamedTuple):
    key: str
    at: Place
    time: str = ""


class Delete(NamedTuple):
    key: str
    at: Place | None


Event = Row | Delete
KEYS, PLACES = st.sampled_from("abc"), st.tuples(st.sampled_from("xyz"), st.integers(0, 2))
ROWS = st.lists(st.builds(Row, KEYS, PLACES), min_size=1, max_size=4)
WEIGHED = st.lists(st.builds(Delete, KEYS, PLACES), min_size=1, max_size=3)
ALWAYS = st.lists(st.builds(Delete, KEYS, st.none()), min_size=1, max_size=3)
BASE = ROWS.map(lambda rows: list({row.key: row for row in rows}.values()))


def reference(base: Sequence[Row], blocks: Sequence[Sequence[Event]]) -> list[Row]:
    state: dict[str, Event] = {}
    for number, block in enumerate(blocks, 2):
        for event in block:
            made = event._replace(time=instant(number)) if isinstance(event, Row) else event
            state[event.key] = after(state.get(event.key), made)
    ends = [after(row._replace(time=BASE_TIME), state.pop(row.key)) if row.key in state else row._replace(time=BASE_TIME) for row in base]
    return [row for row in [*ends, *state.values()] if isinstance(row, Row)]


def after(held: Event | None, event: Event) -> Event:
    if held is None or event.at is None:
        return event
    stays = isinstance(event, Delete) if held.at is None else held.at > event.at
    return held if stays else event


def stored(rows: Sequence[Row], time: str) -> pa.Table:
    meta = [{COMMIT_TIME: time, "_hoodie_record_key": row.key, "_hoodie_partition_path": PARTITION} for row in rows]
    user = [{"id": row.key, "day": row.at[0], "seq": row.at[1]} for row in rows]
    return pa.Table.from_pylist([{**left, **right} for left, right in zip(meta, user, strict=True)], STORED)


def log_block(time: str, events: Sequence[Event]) -> bytes:
    rows = [event for event in events if isinstance(event, Row)]
    if rows:
        return data_block(time, BlockType.AVRO_DATA, render_avro_block(AVRO, stored(rows, time)))
    places = [event.at for event in events if event.at is not None]
    fields = [pa.array([at[0] for at in places], pa.string()), pa.array([at[1] for at in places], pa.int64())] if places else []
    return delete_block(time, [event.key for event in events], fields)


def delete_block(time: str, keys: Sequence[str], fields: Sequence[pa.Array]) -> bytes:
    content = encode_delete_content(pa.array(keys, pa.string()), pa.array([PARTITION] * len(keys)), orderings=fields)
    return data_block(time, BlockType.DELETE, content)


def data_block(time: str, kind: BlockType, content: bytes) -> bytes:
    return render_block(kind, {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: AVRO}, content)


def slice_of(storage: MemoryStorage, base: Sequence[Row], contents: Sequence[bytes]) -> LoggedSlice:
    file = BaseFile(PARTITION, "a-0", "0-1-2", BASE_TIME)
    sink = pa.BufferOutputStream()
    pq.write_table(stored(base, BASE_TIME), sink)
    storage.overwrite(file.path, sink.getvalue().to_pybytes())
    logs, promises = [], []
    for number, content in enumerate(contents, 1):
        log = LogFile(PARTITION, "a-0", BASE_TIME, number, "0-1-0", size=len(content))
        storage.overwrite(log.path, content)
        logs.append(log)
        promises.append(LogPromise(log.path, instant(number + 1), 0, len(content)))
    return LoggedSlice(FileSlice(FileGroupId(PARTITION, "a-0"), BASE_TIME, file, tuple(logs)), tuple(promises))


def reader_of(storage: MemoryStorage) -> SliceReader:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.ordering.fields": "day,seq",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    times = frozenset(instant(number) for number in range(1, 20))
    return SliceReader(storage, SCHEMA, MergeRules.of(TableConfig(properties), SCHEMA), LogScope(times, BASE_TIME))


def read_all(reader: SliceReader, piece: LoggedSlice) -> list[Row]:
    rows = reader.read(piece, [COMMIT_TIME, *SCHEMA.names]).to_pylist()
    return sorted(Row(row["id"], (row["day"], row["seq"]), row[COMMIT_TIME]) for row in rows)


def log_compacted(storage: MemoryStorage, reader: SliceReader, piece: LoggedSlice) -> LoggedSlice:
    storage.overwrite(open_file(instant(15)), b"")
    context = FileContext(storage, instant(15), SCHEMA, AVRO, WriteOptions())
    stat = compact_logs(LogCompactTask(context, 0, reader, piece, 1 << 20))
    assert stat.path is not None
    log = parse_log_file(PARTITION, stat.path.rpartition("/")[2], len(storage.read(stat.path)))
    return LoggedSlice(replace(piece.slice, log_files=(log,)), (LogPromise(log.path, instant(15), 0, log.size),))


@settings(deadline=None, max_examples=80)
@given(base=BASE, blocks=st.lists(ROWS | WEIGHED | ALWAYS, min_size=1, max_size=5))
def test_rows_and_deletions_compare_by_all_fields_compacted_or_not(base: list[Row], blocks: list[list[Event]]) -> None:
    storage = MemoryStorage()
    reader = reader_of(storage)
    piece = slice_of(storage, base, [log_block(instant(number), block) for number, block in enumerate(blocks, 2)])
    expected = sorted(reference(base, blocks))
    assert read_all(reader, piece) == expected
    assert read_all(reader, log_compacted(storage, reader, piece)) == expected


def test_a_log_compaction_keeps_all_values_of_a_deletion() -> None:
    storage = MemoryStorage()
    contents = [log_block(instant(2), [Delete("a", ("x", 1)), Delete("b", ("y", 2))]), log_block(instant(3), [Delete("c", None)])]
    reader = reader_of(storage)
    (log,) = log_compacted(storage, reader, slice_of(storage, [Row("a", ("x", 0))], contents)).slice.log_files
    always, weighed = [decode_delete_block(block) for block in read_blocks(storage.read(log.path))]
    assert (always.keys.to_pylist(), always.wrappers.tolist()) == (["c"], [Wrapper.INT])
    assert (weighed.keys.to_pylist(), weighed.wrappers.tolist()) == (["a", "b"], [Wrapper.ARRAY] * 2)
    assert [values.to_pylist() for values in weighed.orderings([pa.string(), pa.int64()])] == [["x", "y"], [1, 2]]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param([pa.array([1], pa.int64()), pa.array([0], pa.int64())], id="of another type"),
        pytest.param([pa.array(["a"]), pa.array([0], pa.int64()), pa.array([0], pa.int64())], id="of more fields"),
    ],
)
def test_a_deletion_by_other_fields_always_applies(fields: list[pa.Array]) -> None:
    storage = MemoryStorage()
    piece = slice_of(storage, [Row("a", ("x", 9)), Row("b", ("x", 9))], [delete_block(instant(2), ["a"], fields)])
    assert read_all(reader_of(storage), piece) == [Row("b", ("x", 9), BASE_TIME)]


def test_a_null_is_below_every_value_of_its_field() -> None:
    storage = MemoryStorage()
    nothing = [pa.array(["x", "y"]), pa.array([None, None], pa.int64())]
    piece = slice_of(storage, [Row("a", ("x", 0)), Row("b", ("x", 9))], [delete_block(instant(2), ["a", "b"], nothing)])
    assert read_all(reader_of(storage), piece) == [Row("a", ("x", 0), BASE_TIME)]
