"""Footers as they are read and written again: byte for byte, whoever wrote them; what is no footer is refused and not guessed at."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    ThriftList,
    ThriftStruct,
    read_struct,
    write_struct,
)
from tests.support.fixtures import spark_fixtures, unpack_spark_fixture


def footer_of(content: bytes) -> bytes:
    length = int.from_bytes(content[-8:-4], "little")
    return content[-8 - length : -8]


def written(**how: object) -> bytes:
    rows = pa.table({"id": range(50), "tags": [["a", None]] * 50, "real": [0.5] * 50, "none": pa.nulls(50, pa.date32())})
    output = pa.BufferOutputStream()
    pq.write_table(rows, output, row_group_size=20, write_page_index=True, sorting_columns=[pq.SortingColumn(0)], **how)
    return footer_of(output.getvalue().to_pybytes())


@pytest.mark.parametrize("how", [{}, {"store_schema": False}, {"bloom_filter_options": {"id": True}}, {"write_statistics": False}])
def test_arrows_footers_are_written_as_they_were_read(how: dict[str, object]) -> None:
    footer = written(**how)
    assert write_struct(read_struct(footer)) == footer


@pytest.mark.parametrize("name", spark_fixtures()[:3])
def test_hudis_footers_are_written_as_they_were_read(name: str, tmp_path: Path) -> None:
    table = unpack_spark_fixture(name, tmp_path / "t")
    files = [path.read_bytes() for path in table.rglob("*.parquet")]
    assert files
    for content in files:
        footer = footer_of(content)
        assert write_struct(read_struct(footer)) == footer


def test_every_kind_of_value_comes_back() -> None:
    inner = ThriftStruct({1: (BINARY, b"x"), 200: (I64, -(2**63)), 201: (I32, 2**31 - 1)})
    many = ThriftList(I32, list(range(-20, 20)))
    value = ThriftStruct(
        {1: (TRUE, True), 2: (TRUE, False), 3: (BYTE, 7), 5: (DOUBLE, b"12345678"), 40: (STRUCT, inner), 41: (LIST, many)}
    )
    value.set(42, LIST, ThriftList(TRUE, [True, False]))
    value.set(43, LIST, ThriftList(STRUCT, [inner, inner]))
    assert read_struct(write_struct(value)) == value


def test_a_value_that_ends_too_early_or_too_late_is_refused() -> None:
    footer = written()
    for end in range(len(footer)):
        with pytest.raises(FormatError):
            read_struct(footer[:end])
    with pytest.raises(FormatError, match="3 bytes come behind"):
        read_struct(footer + b"\0\0\0")


@pytest.mark.parametrize("kind", [10, 11, 13, 14, 15])
def test_kinds_that_parquet_does_not_have_are_refused(kind: int) -> None:
    with pytest.raises(FormatError, match=f"kind {kind}"):
        read_struct(bytes((0x10 | kind, 0, 0, 0)))


@pytest.mark.parametrize("kind", [STRUCT, LIST])
def test_nesting_without_end_is_refused(kind: int) -> None:
    with pytest.raises(FormatError, match="too deeply"):
        read_struct(bytes((0x10 | kind,)) * 5000)


def test_a_list_that_is_longer_than_its_file_takes_no_memory() -> None:
    with pytest.raises(FormatError, match="longer than its file"):
        read_struct(bytes((0x10 | LIST, 0xF0 | TRUE)) + b"\xff\xff\xff\xff\x7f")


def test_damaged_footers_are_another_value_or_are_refused() -> None:
    footer, chance = written(), random.Random(7)
    for _ in range(3000):
        damaged = bytearray(footer)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            read_struct(bytes(damaged))
        except FormatError:
            continue
