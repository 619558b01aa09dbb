"""Rows buffered by file group until they make a block (Hudi's `StreamWriteFunction`)."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.write.tasks.buffer import BucketBuffer


def rows(first: int, count: int, width: int = 8) -> pa.Table:
    return pa.table({"n": pa.array(range(first, first + count), pa.int64()), "text": pa.array(["x" * width] * count, pa.string())})


def test_rows_stay_together_until_their_bucket_is_full() -> None:
    buffer = BucketBuffer(1000, 100_000)
    assert list(buffer.add(0, rows(0, 10))) == []
    assert list(buffer.add(1, rows(10, 10))) == []
    blocks = list(buffer.add(0, rows(20, 60)))
    assert [bucket for bucket, _ in blocks] == [0]
    assert blocks[0][1].column("n").to_pylist()[:10] == list(range(10))
    assert 1000 <= blocks[0][1].nbytes <= 1000 + 1000 // 8 + 20
    held = buffer.size
    assert held == sum(block.nbytes for _, block in buffer.flush())
    assert buffer.size == 0


def test_the_largest_bucket_goes_when_all_together_are_full() -> None:
    buffer = BucketBuffer(1_000_000, 1000)
    assert list(buffer.add(0, rows(0, 10))) == []
    assert list(buffer.add(1, rows(10, 25))) == []
    [(bucket, block)] = list(buffer.add(2, rows(40, 15)))
    assert (bucket, block.column("n").to_pylist()) == (1, list(range(10, 35)))
    assert [bucket for bucket, _ in buffer.flush()] == [0, 2]


def test_a_row_larger_than_every_limit_is_a_block_of_its_own() -> None:
    buffer = BucketBuffer(100, 200)
    blocks = [block.num_rows for _, block in buffer.add(0, rows(0, 3, width=500))]
    assert blocks == [1, 1, 1]
    assert buffer.largest < 600


def test_a_block_is_reduced_when_it_leaves() -> None:
    buffer = BucketBuffer(10**6, 10**6, reduce=lambda table: table.slice(table.num_rows - 1))
    list(buffer.add(3, rows(0, 5)))
    list(buffer.add(3, rows(5, 5)))
    assert [(bucket, block.column("n").to_pylist()) for bucket, block in buffer.flush()] == [(3, [9])]


ADDITIONS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40), st.sampled_from([0, 3, 90])), max_size=25)


@given(ADDITIONS, st.integers(50, 3000), st.integers(50, 6000))
def test_what_comes_out_is_what_went_in_by_bucket_and_in_order(
    additions: list[tuple[int, int, int]], bucket_bytes: int, total_bytes: int
) -> None:
    buffer, given_rows, got = BucketBuffer(bucket_bytes, total_bytes), {}, {}  # type: ignore[var-annotated]
    first, row_bytes = 0, 8 + 4 + 90 + 8
    for bucket, count, width in additions:
        table = rows(first, count, width)
        given_rows.setdefault(bucket, []).extend(range(first, first + count))
        first += count
        for number, block in buffer.add(bucket, table):
            got.setdefault(number, []).append(block)
        assert buffer.size < total_bytes
    for number, block in buffer.flush():
        got.setdefault(number, []).append(block)
    assert {number: pa.concat_tables(blocks).column("n").to_pylist() for number, blocks in got.items()} == {
        number: numbers for number, numbers in given_rows.items() if numbers
    }
    step = min(bucket_bytes, total_bytes) // 8
    assert all(block.nbytes <= bucket_bytes + step + 2 * row_bytes for blocks in got.values() for block in blocks)
    assert buffer.largest <= total_bytes + step + row_bytes
