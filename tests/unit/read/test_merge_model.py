"""Slices of random base rows and log blocks against a reference that takes one row after the other, as Hudi 0.15 does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.keys import META_COLUMNS, FileGroupId
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.memory import MemoryStorage
from tests.unit.read.hand_made import PARTITION, instant

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
STORED = pa.schema([*[pa.field(name, pa.string()) for name in META_COLUMNS], *SCHEMA])
AVRO = with_meta_columns(table_avro_schema("t", SCHEMA))
PAYLOADS = ["OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "PartialUpdateAvroPayload"]
BASE_TIME = instant(1)


class Row(NamedTuple):
    key: str
    ts: int
    a: int | None
    gone: bool


class Delete(NamedTuple):
    key: str
    ts: int | None


KEYS = st.sampled_from("abcdef")
ROW = st.builds(Row, KEYS, st.integers(0, 4), st.none() | st.integers(0, 9), st.sampled_from([False, False, False, True]))
DELETE = st.builds(Delete, KEYS, st.none() | st.integers(0, 4))
BLOCK = st.lists(ROW, min_size=1, max_size=5) | st.lists(DELETE, min_size=1, max_size=3)
BASE = st.lists(ROW.map(lambda row: row._replace(gone=False)), max_size=5, unique_by=lambda row: row.key)


def reference(payload: str, base: list[Row], blocks: list[list[Any]], compared: bool) -> list[Row]:
    """Hudi's `HoodieMergedLogRecordScanner` over the blocks, then `combineAndGetUpdateValue` with each base row."""
    state: dict[str, Row | None] = {}
    for event in (event for block in blocks for event in block):
        held = state.get(event.key)
        if isinstance(event, Delete):
            stays = held is not None and compared and event.ts is not None and held.ts > event.ts
            state[event.key] = held if stays else None
        elif held is None:
            state[event.key] = event
        else:
            state[event.key] = combined(payload, held, event, among_logs=True, compared=compared)
    rows = []
    for row in base:
        if row.key not in state:
            rows.append(row)
            continue
        offered = state.pop(row.key)
        if offered is None:
            continue
        loses = payload == "DefaultHoodieRecordPayload" and compared and row.ts > offered.ts
        if offered.gone:
            rows += [row] if loses else []
        else:
            rows.append(combined(payload, row, offered, among_logs=False, compared=compared))
    return rows + [row for row in state.values() if row is not None and not row.gone]


def reference_1x(base: list[Row], blocks: list[list[Any]]) -> list[Row]:
    """Hudi 1.x's `EventTimeRecordMerger`: a deletion with an ordering value is compared as a row is, one without always applies."""
    state: dict[str, Row | Delete] = {}
    for event in (event for block in blocks for event in block):
        held = state.get(event.key)
        if held is None or event.ts is None:
            stays = False
        else:
            stays = isinstance(event, Delete) if held.ts is None else held.ts > event.ts
        if not stays:
            state[event.key] = event
    rows = []
    for row in base:
        offered = state.pop(row.key, row)
        rows.append(offered if offered.ts is None or offered.ts >= row.ts else row)
    return [row for row in [*rows, *state.values()] if isinstance(row, Row) and not row.gone]


def combined(payload: str, older: Row, newer: Row, *, among_logs: bool, compared: bool) -> Row:
    disordered = compared and older.ts > newer.ts
    if payload != "PartialUpdateAvroPayload":
        return older if disordered and (among_logs or payload == "DefaultHoodieRecordPayload") else newer
    high, low = (older, newer) if disordered else (newer, older)
    return Row(high.key, high.ts, low.a if high.a is None else high.a, high.gone)


def stored(rows: list[Row], time: str) -> pa.Table:
    meta = [{"_hoodie_commit_time": time, "_hoodie_record_key": row.key, "_hoodie_partition_path": PARTITION} for row in rows]
    user = [{"id": row.key, "ts": row.ts, "a": row.a, "_hoodie_is_deleted": row.gone} for row in rows]
    return pa.Table.from_pylist([{**left, **right} for left, right in zip(meta, user, strict=True)], STORED)


def log_block(time: str, events: list[Any]) -> bytes:
    header = {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: AVRO}
    if isinstance(events[0], Row):
        return render_block(BlockType.AVRO_DATA, header, render_avro_block(AVRO, stored(events, time)))
    keys, ordering = pa.array([event.key for event in events]), pa.array([event.ts for event in events], pa.int64())
    return render_block(BlockType.DELETE, header, encode_delete_content(keys, pa.array([PARTITION] * len(events)), ordering))


def slice_of(storage: MemoryStorage, base: list[Row], blocks: list[list[Any]]) -> LoggedSlice:
    file = BaseFile(PARTITION, "a-0", "0-1-2", BASE_TIME)
    sink = pa.BufferOutputStream()
    pq.write_table(stored(base, BASE_TIME), sink, row_group_size=3)
    storage.overwrite(file.path, sink.getvalue().to_pybytes())
    logs, promises = [], []
    for number, events in enumerate(blocks, 1):
        log, content = LogFile(PARTITION, "a-0", BASE_TIME, number, "0-1-0"), log_block(instant(number + 1), events)
        storage.overwrite(log.path, content)
        logs.append(log)
        promises.append(LogPromise(log.path, instant(number + 1), 0, len(content)))
    return LoggedSlice(FileSlice(FileGroupId(PARTITION, "a-0"), BASE_TIME, file, tuple(logs)), tuple(promises))


def reader_of(storage: MemoryStorage, payload: str, ordering: str, blocks: int, **more: str) -> SliceReader:
    properties = {
        **more,
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.precombine.field": ordering,
        "hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}",
    }
    times = frozenset(instant(number) for number in range(1, blocks + 2))
    return SliceReader(storage, SCHEMA, MergeRules.of(TableConfig(properties), SCHEMA), LogScope(times, BASE_TIME))


def rows_of(table: pa.Table) -> list[Row]:
    columns = (table.column(name).to_pylist() for name in SCHEMA.names)
    return sorted((Row(*values) for values in zip(*columns, strict=True)), key=str)


@pytest.mark.parametrize("ordering", ["ts", ""])
@pytest.mark.parametrize("payload", PAYLOADS)
@settings(deadline=None, max_examples=40)
@given(base=BASE, blocks=st.lists(BLOCK, max_size=5))
def test_a_slice_has_the_rows_of_the_reference(payload: str, ordering: str, base: list[Row], blocks: list[list[Any]]) -> None:
    storage = MemoryStorage()
    piece = slice_of(storage, base, blocks)
    reader = reader_of(storage, payload, ordering, len(blocks))
    check_slice(reader, piece, base, reference(payload, base, blocks, compared=bool(ordering)))


@pytest.mark.parametrize("payload", ["DefaultHoodieRecordPayload", "EventTimeAvroPayload"])
@settings(deadline=None, max_examples=50)
@given(base=BASE, blocks=st.lists(BLOCK, max_size=5))
def test_a_slice_that_hudi_1x_merges_by_event_time_has_the_rows_of_its_reference(
    payload: str, base: list[Row], blocks: list[list[Any]]
) -> None:
    storage = MemoryStorage()
    piece = slice_of(storage, base, blocks)
    reader = reader_of(storage, payload, "ts", len(blocks), **{"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"})
    check_slice(reader, piece, base, reference_1x(base, blocks))


def check_slice(reader: SliceReader, piece: LoggedSlice, base: list[Row], expected: list[Row]) -> None:
    """All ways to read a slice, that of positions in its base file among them, agree."""
    whole = reader.read(piece, SCHEMA.names)
    assert rows_of(whole) == sorted(expected, key=str)
    assert reader.read(piece, ["a"]).column("a").equals(whole.column("a"))
    changes = reader.changes(piece, SCHEMA.names)
    kept = np.setdiff1d(np.arange(len(base)), changes.removed)
    assert sorted(rows_of(changes.added) + [base[row] for row in kept], key=str) == rows_of(whole)
