"""One flipped bit anywhere in a data file: every way to read or change the table has the right rows, or names the file in its error.

A sample of the bits each time, others in each run; `LAKEHOUSE_FLIPS=all` takes every bit, a number that many of each file.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptFileError, CorruptLogError
from lakehouse_engine.files.base_file import check_base_file
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.table_builder import RICH, rich_row

FLIPS = os.environ.get("LAKEHOUSE_FLIPS", "16")
SEED = int(os.environ.get("LAKEHOUSE_FLIP_SEED", random.SystemRandom().randrange(10**6)))
LOG_FORMAT, CODEC = "hoodie.logfile.data.block.format", "hoodie.parquet.compression.codec"
KINDS = {
    "cow": {"table_type": "cow"},
    "cow, uncompressed": {"table_type": "cow", CODEC: "uncompressed"},
    "mor": {"table_type": "mor"},
    "mor, avro": {"table_type": "mor", LOG_FORMAT: "avro"},
    "mor, uncompressed": {"table_type": "mor", CODEC: "uncompressed"},
    "cow, v9": {"table_type": "cow"},
    "mor, v9": {"table_type": "mor"},
    "mor, avro, v9": {"table_type": "mor", LOG_FORMAT: "avro"},
    "mor, uncompressed, v9": {"table_type": "mor", CODEC: "uncompressed"},
}

Use = Callable[[LocalTable], pa.Table]


def rich(numbers: range, seed: int = 0) -> pa.Table:
    return pa.Table.from_pylist([rich_row(number, seed) for number in numbers], RICH)


def keys(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def made(kind: str) -> LocalTable:
    options = dict(KINDS[kind])
    storage, version = MemoryStorage(), TableVersion.NINE if kind.endswith("v9") else TableVersion.SIX
    spec = TableSpec("t", RICH, ("id",), ("ts",), table_type=options.pop("table_type"), version=version)
    create_table(storage, spec)
    table = LocalTable(storage, options)
    table.bulk_insert(rich(range(12)))
    table.upsert(rich(range(8, 11), seed=1))
    table.delete(keys(3, 4))
    return table


def with_content(table: LocalTable, path: str, content: bytes) -> LocalTable:
    copy = MemoryStorage()
    for entry in table.storage.walk():
        copy.overwrite(entry.path, table.storage.read(entry.path))
    copy.overwrite(path, content)
    return LocalTable(copy, table.options)


def data_files(table: LocalTable) -> list[StoredFile]:
    return [entry for entry in table.storage.walk() if "/" not in entry.path and (".parquet" in entry.name or ".log." in entry.name)]


def moments(table: LocalTable) -> list[str]:
    """When the commits show."""
    return [table.state.order.moment(time) for time in table.instants()]


def snapshot(table: LocalTable) -> pa.Table:
    return table.read(meta_columns=True)


def one_column(table: LocalTable) -> pa.Table:
    return table.read(["price"])


def as_of_the_second_commit(table: LocalTable) -> pa.Table:
    return table.read(meta_columns=True, as_of=moments(table)[1])


def changes_of_the_second_commit(table: LocalTable) -> pa.Table:
    first, second, *_ = moments(table)
    return table.read(meta_columns=True, query="incremental", begin=first, end=second)


def after_an_upsert(table: LocalTable) -> pa.Table:
    table.upsert(rich(range(9, 14), seed=2))
    return table.read()


def after_a_partial_update(table: LocalTable) -> pa.Table:
    table.upsert(pa.table({"id": [5, 6], "ts": [500, 500], "price": pa.array([Decimal(1), None], pa.decimal128(10, 2))}), columns=["price"])
    return table.read()


def after_a_delete(table: LocalTable) -> pa.Table:
    table.delete(keys(0, 9, 99))
    return table.read()


def after_a_compaction(table: LocalTable) -> pa.Table:
    table.compact()
    return table.read()


def after_a_log_compaction(table: LocalTable) -> pa.Table:
    table.schedule_compaction(log_compaction=True)
    table.run_compaction(log_compaction=True)
    return table.read()


READS: tuple[Use, ...] = (snapshot, one_column, as_of_the_second_commit, changes_of_the_second_commit)
WRITES: tuple[Use, ...] = (after_an_upsert, after_a_partial_update, after_a_delete)
SERVICES: tuple[Use, ...] = (after_a_compaction, after_a_log_compaction)
CASES = [(kind, use) for kind in KINDS for use in (*READS, *WRITES, *(SERVICES if kind.startswith("mor") else ()))]


def flips(content: bytes, share: int) -> Iterator[tuple[int, int, bytes]]:
    """Byte, bit, and the content with that bit flipped."""
    bits = range(len(content) * 8)
    chosen = bits if FLIPS == "all" else random.Random(f"{SEED}/{len(content)}").sample(bits, max(1, int(FLIPS) // share))
    for number in chosen:
        damaged = bytearray(content)
        damaged[number // 8] ^= 1 << number % 8
        yield number // 8, number % 8, bytes(damaged)


@pytest.mark.parametrize(("kind", "use"), CASES, ids=[f"{kind}-{use.__name__}" for kind, use in CASES])
def test_a_flipped_bit_gives_the_right_rows_or_an_error_that_names_the_file(kind: str, use: Use) -> None:
    table = made(kind)
    files = data_files(table)
    expected = use(with_content(table, files[0].path, table.storage.read(files[0].path)))
    for entry in files:
        for byte, bit, damaged in flips(table.storage.read(entry.path), 1 if use in READS else 4):
            where = f"{entry.path} byte {byte} bit {bit} (LAKEHOUSE_FLIP_SEED={SEED})"
            answer = _answer(use, with_content(table, entry.path, damaged), expected)
            assert answer == RIGHT or entry.path in answer, f"{where}: {answer}"


INSTANT_OF_FIRST_BLOCK = range(34, 51)
"""The bytes of a log file that have the instant time of its first block (hudi-format 5.2)."""


@pytest.mark.parametrize("kind", ["mor, uncompressed", "mor, uncompressed, v9"])
@pytest.mark.parametrize("use", [*READS, *SERVICES], ids=lambda use: use.__name__)
def test_no_bit_of_a_blocks_instant_makes_it_another_commits(kind: str, use: Use) -> None:
    """All of them: one that reads like an archived commit's, or an earlier one's, must not count for a read that ends before it."""
    table = made(kind)
    logs = [entry for entry in data_files(table) if ".log." in entry.name]
    expected = use(with_content(table, logs[0].path, table.storage.read(logs[0].path)))
    for entry in logs:
        content = table.storage.read(entry.path)
        assert content[INSTANT_OF_FIRST_BLOCK.start : INSTANT_OF_FIRST_BLOCK.stop].decode() in table.instants()
        for byte, bit in ((byte, bit) for byte in INSTANT_OF_FIRST_BLOCK for bit in range(8)):
            damaged = bytearray(content)
            damaged[byte] ^= 1 << bit
            answer = _answer(use, with_content(table, entry.path, bytes(damaged)), expected)
            assert answer == RIGHT or entry.path in answer, f"{entry.path} byte {byte} bit {bit}: {answer}"


RIGHT, WRONG = "the right rows", "wrong rows"


def _answer(use: Use, table: LocalTable, expected: pa.Table) -> str:
    try:
        found = use(table)
    except (CorruptFileError, CorruptLogError) as error:
        return str(error)
    return RIGHT if found.equals(expected) else WRONG


@pytest.mark.parametrize("kind", KINDS)
def test_checking_a_base_file_finds_every_flipped_bit(kind: str) -> None:
    table = made(kind)
    for entry in data_files(table):
        if entry.path.endswith(".parquet"):
            check_base_file(table.storage, entry.path)
            for byte, bit, damaged in flips(table.storage.read(entry.path), 1):
                copy = MemoryStorage()
                copy.overwrite(entry.path, damaged)
                assert _is_found(copy, entry.path), f"byte {byte} bit {bit} (LAKEHOUSE_FLIP_SEED={SEED})"


def _is_found(storage: MemoryStorage, path: str) -> bool:
    try:
        check_base_file(storage, path)
    except CorruptFileError as error:
        return path in str(error)
    return False
