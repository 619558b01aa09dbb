"""Checksums of page headers and footers: any flipped bit shows, other writers' files pass, texts that look like a seal do no harm."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.parquet_seal import PAGES_KEY, SealingSink, check_pages, read_metadata
from lakehouse_engine.format.seal import BLANK_SEAL, SEAL_KEY

ROWS = pa.table(
    {
        "id": list(range(300)),
        "name": [f"n{number % 7}" for number in range(300)],
        "tags": [["a", None] if number % 3 else None for number in range(300)],
        "day": pa.array([None] * 300, pa.date32()),
    }
)


def sealed(rows: pa.Table = ROWS, metadata: dict[str, str] | None = None, *, row_group: int = 100, checksums: bool = True) -> bytes:
    output = pa.BufferOutputStream()
    sink = SealingSink(output)
    writer = pq.ParquetWriter(sink, rows.schema, compression="zstd", use_dictionary=["name"], write_page_checksum=checksums)
    writer.write_table(rows, row_group_size=row_group)
    writer.add_key_value_metadata((metadata or {}) | sink.hold())
    writer.close()
    size = sink.finish()
    content: bytes = output.getvalue().to_pybytes()
    assert len(content) == size
    return content


def checked(content: bytes) -> pq.FileMetaData:
    source = pa.BufferReader(content)
    metadata = read_metadata(source)
    check_pages(source, metadata)
    return metadata


def lengths(content: bytes) -> list[int]:
    return [int(part) for part in checked(content).metadata[PAGES_KEY.encode()].decode().split(" ")[1:]]


def test_a_sealed_file_is_read_by_any_reader_of_parquet() -> None:
    content = sealed()
    assert pq.read_table(pa.BufferReader(content), page_checksum_verification=True).equals(ROWS)
    assert checked(content).num_rows == 300


def test_what_is_passed_over_are_the_contents_of_pages_and_nothing_else() -> None:
    content = sealed()
    metadata = checked(content)
    columns = [metadata.row_group(group).column(column) for group in range(3) for column in range(4)]
    pages = sum(1 + column.has_dictionary_page for column in columns)
    covered, passed = lengths(content)[::2], lengths(content)[1::2]
    assert len(passed) == pages
    assert sum(covered) + sum(passed) == len(b"PAR1") + sum(column.total_compressed_size for column in columns)


def test_contents_without_a_checksum_of_their_own_are_covered() -> None:
    assert len(lengths(sealed(checksums=False))) == 1


def test_every_flipped_bit_outside_of_the_contents_of_pages_shows() -> None:
    content = sealed()
    covered, position = [], 0
    for turn, length in enumerate(lengths(content)):
        covered += [] if turn % 2 else range(position, position + length)
        position += length
    for place in (*covered, *range(position, len(content))):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            with pytest.raises((FormatError, pa.ArrowException, OSError)):
                checked(bytes(damaged))


def test_a_file_that_ends_anywhere_else_is_refused() -> None:
    content = sealed()
    for size in range(0, len(content), 7):
        with pytest.raises((FormatError, pa.ArrowException, OSError)):
            checked(content[:size])


def test_texts_of_rows_and_metadata_that_look_like_a_seal_do_no_harm() -> None:
    texts = [BLANK_SEAL, f"{SEAL_KEY}..crc32:00000000", PAGES_KEY]
    content = sealed(pa.table({"text": texts}), {"min": texts[0], "max": texts[1]})
    assert checked(content).metadata[b"max"].decode() == texts[1]


def test_files_without_a_seal_pass() -> None:
    output = pa.BufferOutputStream()
    pq.write_table(ROWS, output)
    assert checked(output.getvalue().to_pybytes()).num_rows == 300


def test_a_file_that_parquet_mr_made_of_ours_with_our_metadata_passes() -> None:
    output = pa.BufferOutputStream()
    stolen = checked(sealed()).metadata
    pq.write_table(ROWS.replace_schema_metadata({key: text for key, text in stolen.items() if key.startswith(b"lakehouse")}), output)
    content = output.getvalue().to_pybytes()
    with pytest.raises(FormatError, match="footer fails its checksum"):
        checked(content)
    version = b"parquet-cpp-arrow version"
    assert checked(content.replace(version, b"parquet-mr".ljust(len(version)))).num_rows == 300


def test_rows_behind_the_hold_are_refused() -> None:
    sink = SealingSink(pa.BufferOutputStream())
    writer = pq.ParquetWriter(sink, ROWS.schema)
    writer.add_key_value_metadata(sink.hold())
    writer.write_table(ROWS)
    writer.close()
    with pytest.raises(FormatError, match="this version of pyarrow"):
        sink.finish()
