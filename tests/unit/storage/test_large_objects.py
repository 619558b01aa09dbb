"""What a large base file in an object store costs to read: a few requests, however many pages it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from lakehouse_engine.errors import CorruptFileError
from lakehouse_engine.files.base_file import check_base_file, check_headers, opened_groups, read_base_file
from lakehouse_engine.format.parquet_seal import page_lengths
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.storage.objects.files import ObjectInput
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import make_table

SCHEMA = pa.schema([("id", pa.int64()), *((f"v{number}", pa.int64()) for number in range(12))])
ROWS = 200_000


class Bucket:
    """A storage of one object, and what was asked for it."""

    root = "s3://bucket/t"

    def __init__(self, content: bytes) -> None:
        self.store, self.requests = MemoryStore(), list[tuple[int, int]]()
        self.put(content)

    def put(self, content: bytes) -> None:
        obstore.put(self.store, "t/base", content)

    def open_input(self, path: str) -> pa.NativeFile:
        bucket = self

        class Counted(ObjectInput):
            def _range(self, start: int, end: int) -> bytes:
                bucket.requests.append((start, end))
                return super()._range(start, end)

        return pa.PythonFile(Counted(self.store, "t/base", path, self.root), mode="r")

    def asked(self) -> int:
        """How many ranges since this was asked last, those in the end of the object, which comes with the first request, included."""
        count = len(self.requests)
        self.requests.clear()
        return count


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder: Path = tmp_path_factory.mktemp("large") / "t"
    table: HoodieTable = make_table(folder, SCHEMA)
    chance = np.random.default_rng(5)
    columns = [np.arange(ROWS), *(chance.integers(0, 2**60, ROWS) for _ in SCHEMA.names[1:])]
    table.bulk_insert(pa.table(columns, schema=SCHEMA))
    (path,) = folder.rglob("*_*.parquet")
    return path.read_bytes()


@pytest.fixture
def bucket(content: bytes) -> Bucket:
    return Bucket(content)


def test_a_file_of_many_pages_is_read_in_few_requests(bucket: Bucket) -> None:
    with opened_groups(bucket, "t/base.parquet", SCHEMA, meta_columns=META_COLUMNS) as groups:  # type: ignore[arg-type]
        told = page_lengths(groups.file.metadata)
        assert told is not None
        assert len(told[1]) > 200
        assert bucket.asked() <= 4
        groups.read(0, columns=["id"])
        assert bucket.asked() <= 2
        chunks = groups.chunks()
        assert chunks is not None
        assert sum(len(piece) for _, pieces in groups.stored(chunks.groups[0].chunks) for piece in pieces) > 10_000_000
        assert bucket.asked() == 1
    check_headers(bucket, "t/base.parquet")  # type: ignore[arg-type]
    assert bucket.asked() <= 4


def test_a_check_of_all_of_it_reads_it_in_large_pieces(bucket: Bucket, content: bytes) -> None:
    check_base_file(bucket, "t/base.parquet")  # type: ignore[arg-type]
    assert bucket.asked() <= 12 + len(content) // 2**20


def with_a_damaged_header(bucket: Bucket, content: bytes) -> None:
    damaged = bytearray(content)
    with opened_groups(bucket, "t/base.parquet", SCHEMA) as groups:  # type: ignore[arg-type]
        column = groups.file.metadata.row_group(0).column(8)
    place = content.index(b"\x15", column.data_page_offset + 1)
    damaged[place + 20] ^= 1
    bucket.put(bytes(damaged))


def test_a_damaged_header_shows_when_all_of_it_is_checked(bucket: Bucket, content: bytes) -> None:
    with_a_damaged_header(bucket, content)
    with pytest.raises(CorruptFileError):
        check_base_file(bucket, "t/base.parquet")  # type: ignore[arg-type]


def test_who_makes_another_file_of_it_reads_it_at_once_and_checks_all_headers(bucket: Bucket, content: bytes) -> None:
    with opened_groups(bucket, "t/base.parquet", SCHEMA, meta_columns=META_COLUMNS, whole=True) as groups:  # type: ignore[arg-type]
        assert groups.read(0).num_rows == ROWS
        assert bucket.asked() == 1
    with_a_damaged_header(bucket, content)
    with (
        pytest.raises(CorruptFileError, match="headers of its pages"),
        opened_groups(bucket, "t/base.parquet", SCHEMA, whole=True),  # type: ignore[arg-type]
    ):
        pass


def test_a_damaged_page_shows_when_it_is_read(bucket: Bucket, content: bytes) -> None:
    damaged = bytearray(content)
    with opened_groups(bucket, "t/base.parquet", SCHEMA) as groups:  # type: ignore[arg-type]
        column = groups.file.metadata.row_group(0).column(8)
        assert column.path_in_schema == "v2"
    damaged[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    bucket.put(bytes(damaged))
    with pytest.raises(CorruptFileError):
        read_base_file(bucket, "t/base.parquet", SCHEMA, columns=["v2"])  # type: ignore[arg-type]
    assert read_base_file(bucket, "t/base.parquet", SCHEMA, columns=["v1"]).num_rows == ROWS  # type: ignore[arg-type]
