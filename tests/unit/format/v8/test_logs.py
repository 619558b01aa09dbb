from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from datetime import date
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError, LakehouseError, UnsupportedTableError
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.format.log.blocks import BlockType, LogBlock
from lakehouse_engine.format.log.data_block import decode_data_block, record_bounds
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block, encode_delete_content
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.format.v8.commits import decode_commit_metadata
from lakehouse_engine.format.v8.history import parse_history_file, read_history
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from tests.unit.format.v8.tables import TABLES, files_of, needs_fixtures, state_files

_NO_LOGS = "v8-1.2.0/mor_merge_into_partial"
"""Its MERGE statements matched no rows."""
_MERGED_ON_READ = [name for name in TABLES if "/mor_" in name and name != _NO_LOGS]
_TIME, _LATER = "20240101000000000", "20240101000001000"


def logs_of(name: str) -> Iterator[tuple[LogFile, bytes]]:
    for path, data in files_of(name).items():
        folder, _, file_name = path.rpartition("/")
        if is_log_file_name(file_name):
            yield parse_log_file(folder, file_name, len(data)), data


def user_blocks(name: str) -> Iterator[tuple[LogFile, LogBlock]]:
    """Blocks with rows and deletions of the table itself."""
    for log, data in logs_of(name):
        if not log.is_cdc and not log.partition_path.startswith(".hoodie/"):
            for block in read_blocks(data):
                yield log, block


def rows_of(block: LogBlock) -> tuple[pa.Array, int]:
    """Record keys, and how many there are."""
    is_deletion = block.type is BlockType.DELETE
    keys = decode_delete_block(block).keys if is_deletion else decode_data_block(block, partial=True)["_hoodie_record_key"]
    return keys, len(keys)


@needs_fixtures
@pytest.mark.parametrize("name", _MERGED_ON_READ)
def test_logs_are_named_by_the_delta_commit_that_wrote_them(name: str) -> None:
    instants = [one for file_name, _ in state_files(name) if (one := FormatV8().parse_file_name(file_name))]
    logs = list(logs_of(name))
    assert logs
    for log, data in logs:
        assert {block.instant_time for block in read_blocks(data)} == {log.instant_time}
        assert any(one.requested_time == log.instant_time for one in instants) or "archive" in name


@needs_fixtures
@pytest.mark.parametrize("name", _MERGED_ON_READ)
def test_every_block_decodes(name: str) -> None:
    for log, data in logs_of(name):
        for block in read_blocks(data):
            assert block.type is not BlockType.CORRUPT, (log.path, block.damage)
            if block.type in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA):
                assert decode_data_block(block, partial=block.is_partial).num_rows > 0
            elif block.type is BlockType.DELETE:
                assert len(decode_delete_block(block)) > 0 or log.partition_path.startswith(".hoodie/metadata")
            elif block.type is BlockType.CDC_DATA:
                starts, _ = record_bounds(block.content)
                assert log.is_cdc
                assert len(starts) > 0
            else:
                assert block.type is BlockType.HFILE_DATA
                assert bytes(block.content[:8]) == b"DATABLK*"


@needs_fixtures
@pytest.mark.parametrize("name", _MERGED_ON_READ)
def test_positions_are_those_of_the_keys_in_the_base_file(name: str) -> None:
    bases = {}
    for path in files_of(name):
        folder, _, file_name = path.rpartition("/")
        if is_base_file_name(file_name) and not folder.startswith(".hoodie"):
            base = parse_base_file(folder, file_name)
            bases[folder, base.file_id, base.instant_time] = path
    for log, block in user_blocks(name):
        positions = block.record_positions
        assert (positions is None) == (block.base_instant is None)
        if positions is None or block.base_instant is None:
            continue
        keys, count = rows_of(block)
        assert len(positions) == count
        base_file = files_of(name)[bases[log.partition_path, log.file_id, block.base_instant]]
        stored = pq.read_table(io.BytesIO(base_file), columns=["_hoodie_record_key"])["_hoodie_record_key"]
        assert stored.take(pa.array(positions)).to_pylist() == keys.to_pylist()


@needs_fixtures
def test_the_tables_have_positions_and_partial_blocks() -> None:
    found = [(block.is_partial, block.record_positions is not None) for name in _MERGED_ON_READ for _, block in user_blocks(name)]
    assert found.count((True, True)) == 4
    assert found.count((False, True)) > 100
    assert (False, False) in found


@needs_fixtures
@pytest.mark.parametrize("name", [name for name in _MERGED_ON_READ if name.endswith("merge_into_partial")])
def test_partial_blocks_have_some_columns_and_are_read_only_where_that_is_asked(name: str) -> None:
    partial = [block for _, block in user_blocks(name) if block.is_partial]
    assert partial
    for block in partial:
        columns = decode_data_block(block, partial=True).column_names
        assert columns[:5] == list(META_COLUMNS)
        assert "ts" in columns
        assert len(columns) < 5 + 6
        with pytest.raises(UnsupportedTableError, match="partial"):
            decode_data_block(block)


def compactions(name: str) -> Iterator[HoodieCompactionOperation]:
    """Of the table, not of its metadata table."""
    for path, data in files_of(name).items():
        folder, _, file_name = path.rpartition("/")
        instant = FormatV8().parse_file_name(file_name) if folder == ".hoodie/timeline" else None
        if data and instant and instant.state is State.REQUESTED and instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            yield from decode_plan(HoodieCompactionPlan, data).operations or ()


def completed_writes(name: str) -> tuple[dict[str, str], dict[tuple[str, str], set[str]]]:
    """Completion times of writes by their requested times, archived ones too; the base files that they wrote to each group."""
    written: list[tuple[Instant, bytes]] = []
    for path, data in files_of(name).items():
        folder, _, file_name = path.rpartition("/")
        if folder == ".hoodie/timeline" and (instant := FormatV8().parse_file_name(file_name)):
            written.append((instant, data))
        elif folder == ".hoodie/timeline/history" and file_name.endswith(".parquet"):
            archived = read_history(data, parse_history_file(file_name, len(data)))
            written += [(entry.instant, entry.metadata or b"") for entry in archived]
    writes = [(instant, data) for instant, data in written if instant.is_completed and instant.action.is_write]
    opened: dict[tuple[str, str], set[str]] = {}
    for instant, data in writes:
        for stat in decode_commit_metadata(data).write_stats():
            if stat.path and is_base_file_name(stat.path.rpartition("/")[2]):
                opened.setdefault((stat.partition_path or "", stat.file_id or ""), set()).add(instant.requested_time)
    return {instant.requested_time: instant.completed_at or "" for instant, _ in writes}, opened


def wrapper(name: str, kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


_WRAPPERS = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": "long",
}
_TEXT = ["null", "string"]
_DELETIONS: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": _TEXT},
                            {"name": "partitionPath", "type": _TEXT},
                            {
                                "name": "orderingVal",
                                "type": [
                                    "null",
                                    *(wrapper(name, kind) for name, kind in _WRAPPERS.items()),
                                    {
                                        "type": "record",
                                        "name": "ArrayWrapper",
                                        "fields": [
                                            {
                                                "name": "wrappedValues",
                                                "type": [
                                                    "null",
                                                    {"type": "array", "items": ["null", *_WRAPPERS, wrapper("LocalDateWrapper", "int")]},
                                                ],
                                            }
                                        ],
                                    },
                                ],
                            },
                        ],
                    },
                },
            }
        ],
    }
)
"""Hudi 1.2.0's `HoodieDeleteRecordList`, without what it documents."""


def deletions(*orderings: Any) -> LogBlock:
    body = io.BytesIO()
    entries = [{"recordKey": f"k{n}", "partitionPath": "p", "orderingVal": value} for n, value in enumerate(orderings)]
    fastavro.schemaless_writer(body, _DELETIONS, {"deleteRecordList": entries})
    return block_of(struct.pack(">ii", 3, len(body.getvalue())) + body.getvalue())


def block_of(content: bytes) -> LogBlock:
    return LogBlock(BlockType.DELETE, {}, memoryview(content))


def several(*values: tuple[str, Any] | None) -> tuple[str, Any]:
    return ("ArrayWrapper", {"wrappedValues": [None if value is None else (value[0], {"value": value[1]}) for value in values]})


def test_several_ordering_values_are_read_as_hudi_writes_them() -> None:
    found = decode_delete_block(
        deletions(
            several(("LongWrapper", 5), ("StringWrapper", "b"), ("LocalDateWrapper", 3)),
            ("IntWrapper", {"value": 0}),
            several(None, ("StringWrapper", "a"), ("DateWrapper", 4)),
            None,
            several(("LongWrapper", -7), None, None),
        )
    )
    kinds = [pa.int64(), pa.string(), pa.date32()]
    assert found.keys.to_pylist() == ["k0", "k1", "k2", "k3", "k4"]
    assert [values.to_pylist() for values in found.orderings(kinds)] == [
        [5, None, None, None, -7],
        ["b", None, "a", None, None],
        [date(1970, 1, 4), None, date(1970, 1, 5), None, None],
    ]
    assert found.always().tolist() == [False, True, False, True, False]
    assert [values.type for values in found.orderings([pa.int32(), pa.float64()])] == [pa.int32(), pa.float64()]
    assert all(values.null_count == 5 for values in found.orderings([pa.int32(), pa.float64()]))
    assert found.orderings(kinds[:1])[0].null_count == 5


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text(max_size=70) | st.none()), max_size=5))
def test_several_ordering_values_come_back(rows: list[tuple[int | None, str | None]]) -> None:
    columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())]
    keys = pa.array([f"k{n}" for n in range(len(rows))], pa.string())
    content = encode_delete_content(keys, pa.array(["p"] * len(rows), pa.string()), orderings=columns)
    found = decode_delete_block(block_of(content))
    assert found.orderings([pa.int64(), pa.string()]) == columns
    listed: Any = fastavro.schemaless_reader(io.BytesIO(content[8:]), _DELETIONS, None)
    assert [entry["recordKey"] for entry in listed["deleteRecordList"]] == keys.to_pylist()
    assert [[value and value["value"] for value in entry["orderingVal"]["wrappedValues"]] for entry in listed["deleteRecordList"]] == [
        list(row) for row in rows
    ]


def test_one_ordering_value_is_not_put_into_an_array() -> None:
    found = decode_delete_block(deletions(("LongWrapper", {"value": 5})))
    assert found.members == ()
    assert found.wrappers.tolist() == [Wrapper.LONG]
    assert found.orderings([pa.int64()])[0].to_pylist() == [5]


@pytest.mark.parametrize(
    "orderings",
    [
        (several(("LongWrapper", 1)), several(("LongWrapper", 1), ("LongWrapper", 2))),
        (several(),),
        (("ArrayWrapper", {"wrappedValues": None}),),
    ],
)
def test_arrays_that_are_not_of_one_table_are_refused(orderings: tuple[Any, ...]) -> None:
    with pytest.raises(FormatError, match="arrays of ordering values"):
        decode_delete_block(deletions(*orderings))


def test_mutated_arrays_are_values_or_typed_errors() -> None:
    content = bytes(deletions(*(several(("LongWrapper", n), ("StringWrapper", f"text{n}")) for n in range(20))).content)
    generator = np.random.default_rng(5)
    for _ in range(2000):
        damaged = bytearray(content)
        damaged[generator.integers(8, len(content))] = int(generator.integers(256))
        try:
            found = decode_delete_block(block_of(bytes(damaged))).orderings([pa.int64(), pa.string()])
        except LakehouseError:
            continue
        assert len(found) == 2
