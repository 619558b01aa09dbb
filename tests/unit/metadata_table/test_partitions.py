"""Which file group has a key, and which data partition a group is of."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.merging import Merging
from lakehouse_engine.metadata_table.partitions import data_partition, group_number, group_numbers, merging_of


def java_group(key: str, count: int) -> int:
    """As Java computes it, one code unit after the other."""
    units = key.encode("utf-16-be")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    positive = signed if signed == -(2**31) else abs(signed)
    return abs(positive) % count if positive >= 0 else abs(-(abs(positive) % count))


@given(st.lists(st.text(max_size=8), max_size=20), st.integers(1, 12))
def test_keys_are_in_the_groups_that_java_puts_them_into(keys: list[str], count: int) -> None:
    assert group_numbers(pa.array(keys, pa.string()), count).tolist() == [java_group(key, count) for key in keys]


@pytest.mark.parametrize("count", [1, 3, 7, 10])
def test_the_least_number_of_32_bits_is_its_own_absolute_value(count: int) -> None:
    assert group_numbers(pa.array([b"polygenelubricants"]), count).tolist() == [2**31 % count]


def test_groups_are_numbered_and_those_of_a_partitioned_index_name_the_partition() -> None:
    assert group_number("record-index-0012-0") == 12
    assert data_partition("record-index-0012-0") is None
    assert group_number("record-index-part%3Dp%2D0-0003-0") == 3
    assert data_partition("record-index-part%3Dp%2D0-0003-0") == "part=p-0"
    assert data_partition("record-index-a%2Fb c-0000-0") == "a/b c"
    assert data_partition("secondary-index-idx-a-0001-0") is None
    with pytest.raises(FormatError, match="no file group"):
        group_number("files")


def test_each_partition_has_its_way_of_merging_and_others_are_refused() -> None:
    names = ("files", "column_stats", "partition_stats", "expr_index_a", "record_index", "bloom_filters", "secondary_index_a")
    found = [merging_of(name) for name in names]
    assert found == [Merging.FILES, *[Merging.STATS] * 3, *[Merging.NEWEST] * 3]
    with pytest.raises(FormatError, match="'other'"):
        merging_of("other")
