"""Files that are put together of chunks of others: any reader reads them, as what they are made of was, and their checksums hold."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.parquet_chunks import Chunk, ChunkAssembly, ChunkedFile, Pieces
from lakehouse_engine.format.parquet_seal import SealingSink, check_pages, read_with_tail
from tests.support.table_builder import RICH, rich_row

ROWS = pa.Table.from_pylist([rich_row(number) for number in range(300)], schema=RICH)
OTHER = pa.Table.from_pylist([rich_row(number, seed=1) for number in range(300)], schema=RICH)


def sealed(rows: pa.Table, row_group: int = 100, **how: object) -> bytes:
    output = pa.BufferOutputStream()
    sink = SealingSink(output)
    given = {"compression": "zstd", "use_dictionary": ["region", "name"], "store_schema": False, "write_page_checksum": True, **how}
    writer = pq.ParquetWriter(sink, rows.schema, data_page_size=256, **given)
    if rows.num_rows:
        writer.write_table(rows, row_group_size=row_group)
    writer.add_key_value_metadata(sink.hold())
    writer.close()
    sink.finish()
    content: bytes = output.getvalue().to_pybytes()
    return content


def chunked(content: bytes) -> ChunkedFile:
    metadata, tail = read_with_tail(pa.BufferReader(content))
    found = ChunkedFile.of(tail, metadata)
    assert found is not None
    return found


def part(content: bytes, chunk: Chunk) -> tuple[Chunk, Pieces]:
    return chunk, chunk.checked(memoryview(content)[chunk.start : chunk.start + chunk.length])


def assembled(groups: list[tuple[int, list[tuple[Chunk, Pieces]]]], texts: dict[str, str]) -> bytes:
    output = pa.BufferOutputStream()
    assembly = ChunkAssembly(output, chunked(sealed(ROWS.schema.empty_table())))
    for rows, chunks in groups:
        assembly.add(rows, chunks)
    size = assembly.finish(texts)
    content: bytes = output.getvalue().to_pybytes()
    assert len(content) == size
    return content


def read(content: bytes) -> pa.Table:
    source = pa.BufferReader(content)
    metadata, _ = read_with_tail(source)
    check_pages(source, metadata)
    return pq.read_table(pa.BufferReader(content), page_checksum_verification=True)


@pytest.mark.parametrize("seed", range(6))
def test_row_groups_of_columns_of_two_files_are_read_as_such(seed: int) -> None:
    chance, contents = random.Random(seed), [sealed(ROWS), sealed(OTHER)]
    files = [chunked(content) for content in contents]
    groups, expected = [], []
    for number in (2, 0, 1, 0):
        taken = {name: chance.randrange(2) for name in RICH.names}
        both = zip(files[0].groups[number].chunks, files[1].groups[number].chunks, strict=True)
        groups.append((100, [part(contents[taken[pair[0].column]], pair[taken[pair[0].column]]) for pair in both]))
        rows = [(ROWS, OTHER)[taken[name]].column(name).slice(100 * number, 100) for name in RICH.names]
        expected.append(pa.table(rows, schema=RICH))
    content = assembled(groups, {"a text": "lakehouse.seal..crc32:00000000", "ключ": "名前"})
    assert read(content).equals(pa.concat_tables(expected))
    metadata = pq.read_metadata(pa.BufferReader(content))
    assert metadata.metadata["ключ".encode()] == "名前".encode()
    assert [metadata.row_group(number).num_rows for number in range(4)] == [100] * 4
    assert chunked(content).has_schema_of(files[0])


def test_what_was_put_together_can_be_taken_apart_again() -> None:
    content = sealed(ROWS)
    for _ in range(3):
        file = chunked(content)
        content = assembled([(group.num_rows, [part(content, chunk) for chunk in group.chunks]) for group in file.groups], {})
    assert read(content).equals(ROWS)


def test_a_file_of_no_row_group_has_no_rows() -> None:
    assert read(assembled([], {"a": "b"})).equals(ROWS.schema.empty_table())


def test_statistics_and_sizes_are_those_of_the_chunks() -> None:
    content = sealed(ROWS)
    groups = [(group.num_rows, [part(content, chunk) for chunk in group.chunks]) for group in chunked(content).groups]
    before, after = pq.read_metadata(pa.BufferReader(content)), pq.read_metadata(pa.BufferReader(assembled(groups[1:], {})))
    for number in range(2):
        old, new = before.row_group(number + 1), after.row_group(number)
        assert (old.total_byte_size, old.num_rows) == (new.total_byte_size, new.num_rows)
        for column in range(old.num_columns):
            was, now = old.column(column), new.column(column)
            assert (was.statistics, was.total_compressed_size, was.encodings) == (now.statistics, now.total_compressed_size, now.encodings)


def test_filters_by_statistics_find_the_rows() -> None:
    content = sealed(ROWS)
    groups = [(group.num_rows, [part(content, chunk) for chunk in group.chunks]) for group in chunked(content).groups]
    found = pq.read_table(pa.BufferReader(assembled([groups[2], groups[0]], {})), filters=pc.field("id") == 250)
    assert found.column("id").to_pylist() == [250]


def take(content: bytes, chunk: Chunk) -> None:
    """What is looked at: headers when the file is opened, contents when they are copied. The footer has a seal of its own."""
    check_pages(pa.BufferReader(content), pq.read_metadata(pa.BufferReader(content)))
    part(content, chunk)


def test_every_flipped_bit_of_a_chunk_shows_before_it_is_copied() -> None:
    content = sealed(ROWS)
    file = chunked(content)
    chunk = next(chunk for chunk in file.groups[0].chunks if chunk.column == "region")
    for place in range(chunk.start, chunk.start + chunk.length):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            with pytest.raises(FormatError, match="checksum"):
                take(bytes(damaged), chunk)


def test_pages_without_a_checksum_are_not_taken() -> None:
    metadata, tail = read_with_tail(pa.BufferReader(sealed(ROWS, write_page_checksum=False)))
    assert ChunkedFile.of(tail, metadata) is None


def test_files_without_a_word_on_their_pages_are_not_taken() -> None:
    output = pa.BufferOutputStream()
    pq.write_table(ROWS, output)
    metadata, tail = read_with_tail(pa.BufferReader(output.getvalue()))
    assert ChunkedFile.of(tail, metadata) is None


def test_other_columns_are_another_schema() -> None:
    file = chunked(sealed(ROWS))
    for rows in (ROWS.drop_columns(["name"]), ROWS.rename_columns(["ID", *RICH.names[1:]]), ROWS.select([*RICH.names[::-1]])):
        assert not file.has_schema_of(chunked(sealed(rows, use_dictionary=False)))
    wider = ROWS.set_column(6, "small", ROWS.column("small").cast(pa.int64()))
    assert not file.has_schema_of(chunked(sealed(wider)))
