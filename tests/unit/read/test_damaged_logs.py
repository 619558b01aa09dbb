"""Damage in log files: an error where a completed write lost rows, silence where none did, never rows that are wrong for want of some."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptLogError, LakehouseError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.log.blocks import MAGIC, BlockType
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_rollback
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.storage.memory import MemoryStorage
from tests.unit.read.hand_made import PARTITION, SCHEMA, instant
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block

T1, T2, T3, T4 = (instant(number) for number in range(1, 5))
LOG = LogFile(PARTITION, "a-0", T1, 1, "0-1-0")
CONFIG = TableConfig(
    {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.precombine.field": "n",
    }
)


class Slice:
    """A slice of one log file, in memory."""

    def __init__(self, whole: bytes, promises: list[tuple[str, int, int]], completed: set[str], start: str = T1) -> None:
        group = FileGroupId(PARTITION, LOG.file_id)
        self.piece = LoggedSlice(FileSlice(group, T1, None, (LOG,)), tuple(LogPromise(LOG.path, *promise) for promise in promises))
        self.whole, self.scope = whole, LogScope(frozenset(completed), start)

    def read(self, content: bytes) -> dict[str, int]:
        storage = MemoryStorage()
        storage.overwrite(LOG.path, content)
        rows = SliceReader(storage, SCHEMA, MergeRules.of(CONFIG, SCHEMA), self.scope).read(self.piece, SCHEMA.names)
        return dict(zip(rows.column("id").to_pylist(), rows.column("n").to_pylist(), strict=True))


FIRST, LAST = data_block(T2, {"k1": 1, "k2": 2}), data_block(T3, {"k2": 5, "k3": 3})


def appended(last: bytes = LAST, *, completed: bool) -> Slice:
    """Two appends to one file, the second one by T3, which completed or not."""
    promises = [(T2, 0, len(FIRST))] + ([(T3, len(FIRST), len(FIRST) + len(last))] if completed else [])
    return Slice(FIRST + last, promises, {T1, T2, T3} if completed else {T1, T2})


@pytest.mark.parametrize(
    "last", [LAST, delete_block(T3, ["k1"]), data_block(T3, {"k2": 5}, parquet=True)], ids=["avro", "delete", "parquet"]
)
def test_a_log_that_ends_anywhere_in_its_last_block_is_an_error_if_its_write_completed(last: bytes) -> None:
    made = appended(last, completed=True)
    assert made.read(made.whole) in ({"k1": 1, "k2": 5, "k3": 3}, {"k2": 2}, {"k1": 1, "k2": 5})
    for size in range(len(last)):
        with pytest.raises(CorruptLogError) as caught:
            made.read(made.whole[: len(FIRST) + size])
        assert caught.value.context["instant"] == T3


def test_a_log_that_ends_anywhere_in_its_last_block_has_the_blocks_before_if_its_write_did_not_complete() -> None:
    made = appended(completed=False)
    for size in range(len(LAST) + 1):
        assert made.read(made.whole[: len(FIRST) + size]) == {"k1": 1, "k2": 2}, size


def test_a_torn_block_of_an_archived_write_is_an_error() -> None:
    made = Slice(FIRST + LAST, [], {T4}, start=T4)
    assert made.read(made.whole) == {"k1": 1, "k2": 5, "k3": 3}
    for size in range(1, len(LAST)):
        with pytest.raises(CorruptLogError):
            made.read(made.whole[: len(FIRST) + size])


def test_a_torn_block_of_an_archived_write_that_was_rolled_back_is_none() -> None:
    made = Slice(b"", [], {T4}, start=T4)
    # The header says who wrote it as soon as it is there to the end of the instant time.
    for size in range(60, len(LAST), 7):
        assert made.read(FIRST + LAST[:size] + render_rollback(T4, T3)) == {"k1": 1, "k2": 2}


def test_every_flipped_bit_of_the_frame_of_a_committed_block_is_found() -> None:
    made = appended(completed=True)
    (block,) = list(read_blocks(LAST))
    content = LAST.index(bytes(block.content))
    schema = LAST.index(b'{"type"')
    frame = [*range(schema - 8), *range(content - 8, content), *range(content + len(block.content), len(LAST))]
    for place in frame:
        for bit in range(8):
            with pytest.raises(CorruptLogError):
                made.read(flipped(made.whole, len(FIRST) + place, bit))


def test_every_flipped_bit_of_the_frame_of_a_block_that_did_not_complete_is_passed_over() -> None:
    made = appended(completed=False)
    for place in range(0, len(LAST), 7):
        assert made.read(flipped(made.whole, len(FIRST) + place, place % 8)) == {"k1": 1, "k2": 2}


def test_flipped_bits_of_a_content_are_errors_or_other_values() -> None:
    made = appended(completed=True)
    for place in range(len(FIRST), len(made.whole)):
        outcome(made, flipped(made.whole, place, place % 8))


def flipped(content: bytes, place: int, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    return bytes(damaged)


def outcome(made: Slice, content: bytes) -> dict[str, int] | LakehouseError:
    """What a read gives: rows or a typed error, anything else is a failure of the test."""
    try:
        return made.read(content)
    except LakehouseError as error:
        return error


def test_the_magic_in_data_is_data() -> None:
    rows = {f"k{MAGIC.decode()}{number}": number for number in range(3)} | {MAGIC.decode(): 9}
    block = data_block(T2, rows)
    made = Slice(block, [(T2, 0, len(block))], {T1, T2})
    assert made.read(block) == rows


def test_after_a_damaged_block_with_the_magic_in_it_the_next_true_block_is_read() -> None:
    torn = data_block(T3, {f"{MAGIC.decode()}{number}": number for number in range(20)})
    for size in (10, 30, len(torn) // 2, len(torn) - 1):
        content = torn[:size] + FIRST
        kinds = [block.type for block in read_blocks(content)]
        assert kinds == [BlockType.CORRUPT, BlockType.AVRO_DATA]
        assert Slice(content, [(T2, size, len(content))], {T1, T2}).read(content) == {"k1": 1, "k2": 2}


def test_rubbish_behind_a_whole_block_does_not_take_it() -> None:
    made = Slice(FIRST, [(T2, 0, len(FIRST))], {T1, T2})
    for rubbish in (b"#", b"#HUDI", b"\0" * 100, MAGIC):
        assert made.read(FIRST + rubbish) == {"k1": 1, "k2": 2}


def test_a_whole_log_of_another_write_in_the_place_of_a_committed_one_is_found() -> None:
    other = data_block(T3, {"k1": 1, "k2": 2})
    made = Slice(FIRST, [(T2, 0, len(FIRST))], {T1, T2, T3})
    with pytest.raises(CorruptLogError, match=T3):
        made.read(other)


@pytest.fixture
def table(tmp_path: Path) -> HandMadeLogTable:
    made = HandMadeLogTable(tmp_path)
    made.write(T1, {"a": {"k1": (T1, 1), "k2": (T1, 2)}})
    return made


def rows_of(table: HandMadeLogTable) -> dict[str, int]:
    rows: pa.Table = read_arrow(plan_snapshot(table.state()))
    return dict(zip(rows.column("id").to_pylist(), rows.column("n").to_pylist(), strict=True))


def test_logs_behind_an_empty_one_are_read(table: HandMadeLogTable) -> None:
    table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.log(T1, 2, b"")
    table.append(T3, T1, 3, data_block(T3, {"k2": 6}))
    assert rows_of(table) == {"k1": 5, "k2": 6}


def test_an_empty_log_of_a_completed_write_is_an_error(table: HandMadeLogTable) -> None:
    log = table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.append(T3, T1, 2, data_block(T3, {"k2": 6}))
    table.put(log, b"")
    with pytest.raises(CorruptLogError, match=r"0 bytes") as caught:
        rows_of(table)
    assert caught.value.context["instant"] == T2


def test_a_torn_rollback_block_has_no_effect_and_takes_nothing_with_it(table: HandMadeLogTable) -> None:
    rollback = render_rollback(T3, "20240101000002500")
    table.append(T2, T1, 1, data_block(T2, {"k1": 5}))
    table.append(T4, T1, 3, data_block(T4, {"k2": 6}))
    for size in range(0, len(rollback) + 1, 5):
        table.log(T1, 2, rollback[:size])
        assert rows_of(table) == {"k1": 5, "k2": 6}


MUTATIONS = int(os.environ.get("LAKEHOUSE_FUZZ_MUTATIONS", "100000"))
FIRST_SEED = int(os.environ.get("LAKEHOUSE_FUZZ_SEED", "20240101"))
_BLOCK = 5_000
SEEDS = [str(FIRST_SEED + block) for block in range(-(-MUTATIONS // _BLOCK))]


def mutated(content: bytes, generator: random.Random) -> bytes:
    """Some bytes changed, cut, doubled, moved or put in."""
    damaged = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 8))):
        start = generator.randrange(len(damaged))
        length = generator.choice((1, 1, 2, 4, 8, 40))
        kind = generator.randrange(6)
        if kind == 0:
            damaged[start] ^= 1 << generator.randrange(8)
        elif kind == 1:
            damaged[start : start + length] = generator.randbytes(length)
        elif kind == 2:
            damaged[start : start + length] = b"\xff" * length
        elif kind == 3:
            del damaged[start : start + length]
        elif kind == 4:
            damaged[start:start] = damaged[: generator.randrange(len(damaged))]
        else:
            damaged[start:start] = MAGIC
        damaged = damaged or bytearray(b"#")
    return bytes(damaged)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_logs_give_rows_or_typed_errors_and_never_hang(seed: str) -> None:
    generator = random.Random(int(seed))
    parquet = data_block(T2, {"k1": 1, "k2": 2}, parquet=True)
    logs = [FIRST + LAST, FIRST + delete_block(T3, ["k1", "k2"], [7, 300]), delete_block(T2, ["k1"]) + LAST, parquet + LAST]
    for number in range(min(_BLOCK, MUTATIONS)):
        whole = logs[number % len(logs)]
        # Without promises nothing is refused before it is decoded.
        outcome(Slice(whole, [], {T1, T2, T3}), mutated(whole, generator))
