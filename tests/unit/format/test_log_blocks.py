"""Log blocks there and back, and their contents against fastavro."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
import struct
import time
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError, LakehouseError, UnsupportedTableError
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.log import delete_block
from lakehouse_engine.format.log.blocks import MAGIC, BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.data_block import decode_data_block, render_avro_block
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block, encode_delete_content
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block, render_rollback

TYPES = st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT])
TEXTS = st.dictionaries(st.integers(0, 20), st.text(st.characters(codec="utf-8"), max_size=30), max_size=5)
BLOCKS = st.lists(st.tuples(TYPES, TEXTS, st.binary(max_size=60), TEXTS), max_size=4)


@given(BLOCKS)
def test_blocks_come_back_in_order_with_what_they_hold(blocks: list[tuple[BlockType, dict[int, str], bytes, dict[int, str]]]) -> None:
    data = b"".join(render_block(*block) for block in blocks)
    found = list(read_blocks(data))
    assert [(block.type, block.header, bytes(block.content), block.footer) for block in found] == blocks
    assert [block.offset for block in found] == [0, *(block.end for block in found)][: len(found)]
    assert sum(block.length for block in found) == len(data)


@given(
    st.lists(st.sampled_from([MAGIC, b"#", b"\0" * 8, render_rollback("20240101000000000", "20230101000000000")[:50]]), max_size=6), BLOCKS
)
def test_stretches_and_blocks_make_up_the_whole_file_whatever_is_in_it(
    rubbish: list[bytes], blocks: list[tuple[BlockType, dict[int, str], bytes, dict[int, str]]]
) -> None:
    data = b"".join(rubbish) + b"".join(render_block(*block) for block in blocks)
    found = list(read_blocks(data))
    assert b"".join(data[block.offset : block.end] for block in found) == data
    assert len([block for block in found if block.type is not BlockType.CORRUPT]) == len(blocks)


def test_a_rollback_block_has_the_length_of_hudis() -> None:
    block = render_rollback("20250331030642808", "20250331030630123")
    assert len(block) == 105
    (found,) = list(read_blocks(block))
    assert found.is_rollback
    assert (found.instant_time, found.target_instant_time) == ("20250331030642808", "20250331030630123")


INNER = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.string())))])
SCHEMA = pa.schema(
    [
        ("flag", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("small", pa.decimal128(7, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("ids", pa.list_(pa.field("element", pa.int64()))),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("nested", INNER),
        ("nests", pa.list_(pa.field("element", INNER))),
    ]
)
AVRO = table_avro_schema("t", SCHEMA)

_LONG = st.integers(-(2**63), 2**63 - 1)
_STRUCT = st.fixed_dictionaries({"a": st.none() | _LONG, "b": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3)})
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": _LONG,
    "f": st.floats(width=32, allow_nan=False),
    "d": st.floats(allow_nan=False),
    "s": st.text(st.characters(codec="utf-8"), max_size=20),
    "b": st.binary(max_size=20),
    "small": st.decimals(Decimal("-99999.99"), Decimal("99999.99"), places=2),
    "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-10, Context(prec=60))),
    "day": st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "at": st.integers(-(2**50), 2**53).map(
        lambda micros: dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=micros)
    ),
    "ids": st.lists(st.none() | _LONG, max_size=5),
    "m": st.dictionaries(st.text(max_size=3), st.none() | st.floats(allow_nan=False), max_size=3).map(lambda found: list(found.items())),
    "nested": _STRUCT,
    "nests": st.lists(st.none() | _STRUCT, max_size=3),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in _VALUES.items()}), max_size=6)


def avro_block(schema: str, content: bytes) -> LogBlock:
    return LogBlock(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, memoryview(content))


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_rows_of_every_type_come_back_and_fastavro_reads_the_same(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    content = render_avro_block(AVRO, table)
    decoded = decode_data_block(avro_block(AVRO, content))
    assert decoded.cast(SCHEMA).equals(table)
    parsed, position = fastavro.parse_schema(json.loads(AVRO)), 8
    for row in table.to_pylist(maps_as_pydicts="strict"):
        (size,) = struct.unpack_from(">i", content, position)
        assert fastavro.schemaless_reader(io.BytesIO(content[position + 4 : position + 4 + size]), parsed) == row
        position += 4 + size
    assert position == len(content)


def framed(schema: Any, records: list[Any]) -> bytes:
    parsed, parts = fastavro.parse_schema(schema), []
    for record in records:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, record)
        parts.append(struct.pack(">i", len(sink.getvalue())) + sink.getvalue())
    return struct.pack(">ii", 3, len(records)) + b"".join(parts)


def record_of(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "namespace": "n", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def test_shapes_that_other_writers_leave_are_read() -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}
    schema = record_of(
        ("value_first", ["long", "null"]),
        ("required", "string"),
        ("enum", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
        ("bytes_decimal", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}),
        ("millis", {"type": "long", "logicalType": "timestamp-millis"}),
        ("first", inner),
        ("again", ["null", "n.inner"]),
    )
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=dt.timezone.utc)
    rows = [
        {
            "value_first": 7,
            "required": "x",
            "enum": "B",
            "bytes_decimal": Decimal("-1.500"),
            "millis": at,
            "first": {"x": 1},
            "again": None,
        },
        {
            "value_first": None,
            "required": "",
            "enum": "A",
            "bytes_decimal": Decimal("123456.789"),
            "millis": at,
            "first": {"x": 2},
            "again": {"x": 3},
        },
    ]
    assert decode_data_block(avro_block(json.dumps(schema), framed(schema, rows))).to_pylist() == rows


def test_arrays_in_several_blocks_and_blocks_with_sizes_are_read() -> None:
    schema = record_of(("ids", {"type": "array", "items": "long"}), ("last", "int"))
    # Two elements, then one in a block that has its size in front, then none.
    record = bytes([4, 2, 4, 1, 2, 6, 0, 8])
    content = struct.pack(">iii", 3, 1, len(record)) + record
    assert decode_data_block(avro_block(json.dumps(schema), content)).to_pylist() == [{"ids": [1, 2, 3], "last": 4}]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">ii", 2, 0),
        struct.pack(">ii", 3, 1),
        struct.pack(">ii", 3, -1),
        struct.pack(">iii", 3, 1, -1),
        struct.pack(">iii", 3, 1, 2) + b"\x02",
        struct.pack(">iii", 3, 1, 2) + b"\x02\x04\x06",
        struct.pack(">iii", 3, 1, 11) + b"\xff" * 11,
        struct.pack(">iii", 3, 1, 1) + b"\x80",
        struct.pack(">iii", 3, 1, 2) + b"\x02\x02",
    ],
)
def test_contents_that_do_not_decode_are_errors(content: bytes) -> None:
    with pytest.raises(FormatError):
        decode_data_block(avro_block(json.dumps(record_of(("i", "int"))), content))


def test_mutated_contents_of_every_type_are_values_or_typed_errors() -> None:
    nested = {"a": 5, "b": ["x", None, "yz"]}
    row = {"flag": True, "i": 5, "l": -6, "f": 1.5, "d": 2.5, "s": "text", "b": b"bytes", "small": Decimal("1.23"), "wide": Decimal("4.5")}
    more = {"day": dt.date(2024, 1, 1), "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), "ids": [1, None, 3], "m": [("k", 1.0)]}
    rows = [{**row, **more, "nested": nested, "nests": [nested, None]}] * 3
    content = render_avro_block(AVRO, pa.Table.from_pylist(rows, SCHEMA))
    generator, slowest = random.Random(7), 0.0
    for _ in range(1500):
        damaged = bytearray(content)
        for _ in range(generator.choice((1, 1, 2, 5))):
            damaged[generator.randrange(8, len(damaged))] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)))
        started = time.process_time()
        try:
            decode_data_block(avro_block(AVRO, bytes(damaged)))
        except LakehouseError:
            continue
        finally:
            slowest = max(slowest, time.process_time() - started)
    assert slowest < 1


def test_mutated_schemas_are_values_or_typed_errors() -> None:
    content = render_avro_block(AVRO, pa.Table.from_pylist([dict.fromkeys(SCHEMA.names)] * 3, SCHEMA))
    generator = random.Random(7)
    for _ in range(1500):
        damaged = list(AVRO)
        damaged[generator.randrange(len(damaged))] = generator.choice('{}[]":,aext1-\0')
        try:
            decode_data_block(avro_block("".join(damaged), content))
        except LakehouseError:
            continue


# Delete blocks

ORDERING = {
    Wrapper.BOOLEAN: st.booleans(),
    Wrapper.INT: _VALUES["i"],
    Wrapper.LONG: _LONG,
    Wrapper.FLOAT: _VALUES["f"],
    Wrapper.DOUBLE: _VALUES["d"],
    Wrapper.BYTES: _VALUES["b"],
    Wrapper.STRING: _VALUES["s"],
    Wrapper.DATE: _VALUES["day"],
    Wrapper.DECIMAL: st.decimals(-(10**10), 10**10, places=15),
    Wrapper.TIMESTAMP_MICROS: _VALUES["at"],
}
KINDS: dict[Wrapper, pa.DataType] = {
    Wrapper.BOOLEAN: pa.bool_(),
    Wrapper.INT: pa.int32(),
    Wrapper.LONG: pa.int64(),
    Wrapper.FLOAT: pa.float32(),
    Wrapper.DOUBLE: pa.float64(),
    Wrapper.BYTES: pa.binary(),
    Wrapper.STRING: pa.string(),
    Wrapper.DATE: pa.date32(),
    Wrapper.DECIMAL: pa.decimal128(30, 15),
    Wrapper.TIMESTAMP_MICROS: pa.timestamp("us", tz="UTC"),
}


slowly = delete_block._after


def deletions(content: bytes) -> LogBlock:
    return LogBlock(BlockType.DELETE, {}, memoryview(content))


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_deletions_with_ordering_values_of_every_kind_come_back(data: st.DataObject) -> None:
    wrapper = data.draw(st.sampled_from(sorted(ORDERING)))
    keys = data.draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=80), max_size=6))
    values = data.draw(st.lists(st.none() | ORDERING[wrapper], min_size=len(keys), max_size=len(keys)))
    ordering = pa.array(values, KINDS[wrapper])
    found = decode_delete_block(
        deletions(encode_delete_content(pa.array(keys, pa.string()), pa.array(["p=1"] * len(keys), pa.string()), ordering))
    )
    assert found.keys.to_pylist() == keys
    assert found.partition_paths.to_pylist() == ["p=1"] * len(keys)
    assert found.ordering(KINDS[wrapper]).equals(ordering)
    assert found.always().tolist() == [value is None or (wrapper is Wrapper.INT and value == 0) for value in values]
    assert found.ordering(pa.time64("us")).null_count == len(keys)


@pytest.mark.parametrize("ordering", [None, pa.int64(), pa.date32(), pa.string()])
def test_deletions_with_keys_of_every_length_come_back(ordering: pa.DataType | None) -> None:
    """Lengths take one byte up to 63, two up to 8191, then three."""
    lengths = [0, 1, 62, 63, 64, 65, 127, 128, 8190, 8191, 8192, 8193, 20_000]
    keys = [chr(97 + number) * length for number, length in enumerate(lengths)] * 2
    paths = ["p" * length for length in reversed(lengths)] * 2
    numbers = pa.array([-64, 63, 64, 2**31 - 1, -(2**31), 0] * 4 + [1, 2], pa.int32())
    values = None if ordering is None else numbers.cast(ordering)
    found = decode_delete_block(deletions(encode_delete_content(pa.array(keys), pa.array(paths), values)))
    assert found.keys.to_pylist() == keys
    assert found.partition_paths.to_pylist() == paths
    if ordering is not None:
        assert found.ordering(ordering).equals(values)


def test_common_deletions_are_stepped_over_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table may have as many of them as keys: taking each apart costs twenty times as much."""
    taken_apart: list[int] = []
    monkeypatch.setattr(delete_block, "_after", lambda data, at: taken_apart.append(at) or slowly(data, at))
    keys = pa.array([f"id:{n:08d},name:{'x' * (n % 90)}" for n in range(1000)])
    content = encode_delete_content(keys, pa.repeat("day=2026-11-21", 1000))
    assert decode_delete_block(deletions(content)).keys.equals(keys)
    assert len(taken_apart) <= 1


def test_deletions_without_ordering_values_are_hudis_bytes() -> None:
    content = encode_delete_content(pa.array(["k"]), pa.array(["p"]))
    entry = bytes([2, 2, ord("k"), 2, 2, ord("p"), 4, 0])
    assert content == struct.pack(">ii", 3, 10) + b"\x02" + entry + b"\x00"
    assert encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string())) == struct.pack(">ii", 3, 1) + b"\0"
    (always,) = decode_delete_block(deletions(content)).always()
    assert always


@pytest.mark.parametrize("version", [1, 2])
def test_deletions_of_old_releases_are_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedTableError, match="Java"):
        decode_delete_block(deletions(struct.pack(">ii", version, 4) + b"kryo"))


def test_ordering_values_of_an_unknown_kind_are_refused() -> None:
    body = bytes([2, 2, 2, ord("k"), 0, 26, 0, 0])
    with pytest.raises(UnsupportedTableError, match="13"):
        decode_delete_block(deletions(struct.pack(">ii", 3, len(body)) + body))


def test_a_list_of_deletions_in_several_blocks_is_read() -> None:
    entry = bytes([2, 2, ord("k"), 0, 4, 0])
    body = bytes([4]) + entry * 2 + bytes([1, 2 * len(entry)]) + entry + b"\0"
    assert len(decode_delete_block(deletions(struct.pack(">ii", 3, len(body)) + body))) == 3


def test_mutated_deletions_are_keys_or_typed_errors() -> None:
    content = encode_delete_content(pa.array([f"key{n}" for n in range(20)]), pa.array(["p"] * 20), pa.array(range(20), pa.int64()))
    generator = random.Random(7)
    for _ in range(3000):
        damaged = bytearray(content)
        for _ in range(generator.choice((1, 2, 5))):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)))
        try:
            decode_delete_block(deletions(bytes(damaged))).ordering(pa.int64())
        except LakehouseError:
            continue
