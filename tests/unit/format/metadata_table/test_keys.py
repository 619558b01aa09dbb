"""Keys of metadata records: hashes, and the keys of a secondary index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.format.metadata_table.hashing import file_hash, name_hash, xxhash64
from lakehouse_engine.format.metadata_table.keys import (
    bloom_filter_keys,
    column_prefix,
    column_stats_keys,
    expression_partition_stats_keys,
    partition_stats_keys,
    secondary_keys,
    secondary_prefix,
    split_secondary_keys,
)

TEXTS = st.text(alphabet="a$\\\0\u00e9\U0001f600\n", max_size=6)


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.string())


@pytest.mark.parametrize(
    ("data", "seed", "value"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Hudi", 0xFFFFFFFFDABADABA, 0xB9A47174FD473C0E),
    ],
)
def test_hashes_are_those_of_the_specification(data: bytes, seed: int, value: int) -> None:
    assert xxhash64(data, seed) == value


def test_keys_are_the_hashes_of_their_parts_in_order() -> None:
    column, partition, file = name_hash("id"), name_hash("p=1"), file_hash("f.parquet")
    assert (len(column), len(partition), len(file)) == (12, 12, 24)
    assert column_stats_keys(texts("id"), texts("p=1"), texts("f.parquet")).to_pylist() == [column + partition + file]
    assert partition_stats_keys(texts("id"), texts("p=1")).to_pylist() == [column + partition]
    assert bloom_filter_keys(texts("p=1"), texts("f.parquet")).to_pylist() == [partition + file]
    assert column_prefix("id") == column
    assert column_prefix("id", "p=1") == column + partition
    assert expression_partition_stats_keys(texts("id"), texts("p=1")).to_pylist() == [column + name_hash("__partition_stat__") + partition]


def test_the_only_partition_of_a_table_without_partitions_is_a_dot() -> None:
    assert bloom_filter_keys(texts(""), texts("f")).to_pylist() == [name_hash(".") + file_hash("f")]
    assert column_prefix("id", "") == name_hash("id") + name_hash(".")


@given(st.lists(st.tuples(st.one_of(st.none(), TEXTS.filter(lambda text: text != "\0")), TEXTS), max_size=20))
def test_keys_of_a_secondary_index_are_split_into_what_they_were_made_of(pairs: list[tuple[str | None, str]]) -> None:
    values, record_keys = (pa.array([pair[place] for pair in pairs], pa.string()) for place in (0, 1))
    keys = secondary_keys(values, record_keys)
    found = split_secondary_keys(keys)
    assert (found[0].to_pylist(), found[1].to_pylist()) == (values.to_pylist(), record_keys.to_pylist())
    for value, key in zip(values.to_pylist(), keys.to_pylist(), strict=True):
        assert key.startswith(secondary_prefix(value))


def test_a_null_value_is_the_nul_character_and_special_characters_are_escaped() -> None:
    keys = secondary_keys(pa.array([None, "a$b\\"], pa.string()), texts("k", "x$"))
    assert keys.to_pylist() == [b"\0$k", b"a\\$b\\\\$x\\$"]
