"""Merging against references that go payload by payload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.hfile.writer import sorted_cells
from lakehouse_engine.format.metadata_table.bloom_filters import bloom_filter_payloads, secondary_index_payload
from lakehouse_engine.format.metadata_table.files import FILE_ENTRIES, files_payloads
from lakehouse_engine.format.metadata_table.merging import Layer, Merging, Records, merged, newest
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.format.metadata_table.statistics import COUNTS, stats_bounds, stats_payloads
from lakehouse_engine.model.table_version import TableVersion

TEXT = record_schema(TableVersion.NINE)
KEYS = st.sampled_from(["a", "b", "c", "d"])
NAMES = st.sampled_from(["f", "g", "h"])

Files = dict[str, tuple[int, bool]]


def layer(keys: list[str], payloads: pa.Table, text: str = TEXT) -> Layer:
    return Layer(sorted_cells(pa.array(keys, pa.string()), encode_payloads(text, payloads)), text)


def files_layer(records: dict[str, Files]) -> Layer:
    rows = [(number, name, *entry) for number, files in enumerate(records.values()) for name, entry in files.items()]
    columns = [[row[place] for row in rows] for place in range(4)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FILE_ENTRIES, strict=True)]
    entries = pa.Table.from_arrays(arrays, schema=FILE_ENTRIES)
    return layer(list(records), files_payloads(pa.array(list(records), pa.string()), entries))


def files_of(records: Records) -> dict[str, Files]:
    maps = records.payloads.column("filesystemMetadata").to_pylist(maps_as_pydicts="strict")
    return {
        key.decode(): {name: (entry["size"], entry["isDeleted"]) for name, entry in files.items()}
        for key, files in zip(records.keys.to_pylist(), maps, strict=True)
    }


def merged_files(older: Files, newer: Files) -> Files:
    """As Hudi merges two of them."""
    found = dict(older)
    for name, (size, is_deleted) in newer.items():
        known = found.get(name)
        if known is None:
            found[name] = size, is_deleted
        elif not is_deleted:
            found[name] = max(size, known[0]), False
        elif known[1]:
            found[name] = size, True
        else:
            del found[name]
    return found


ENTRIES = st.dictionaries(NAMES, st.one_of(st.tuples(st.integers(1, 9), st.just(False)), st.just((0, True))))


@settings(max_examples=50)
@given(st.lists(st.dictionaries(KEYS, ENTRIES, min_size=1) | st.lists(KEYS, unique=True), max_size=6))
def test_files_are_united_and_deletions_take_away_what_came_before(steps: list[dict[str, Files] | list[str]]) -> None:
    expected: dict[str, Files] = {}
    for step in steps:
        if isinstance(step, list):
            expected = {key: files for key, files in expected.items() if key not in step}
            continue
        for key, files in step.items():
            expected[key] = merged_files(expected.get(key, {}), files)
    layers = [files_layer(step) if isinstance(step, dict) else Layer.deletion(pa.array(step, pa.string())) for step in steps]
    found = files_of(merged(layers, Merging.FILES))
    assert found.keys() == expected.keys()
    for key, files in expected.items():
        # Which deletions of absent names are kept after several in a row is nothing that a reader sees.
        live = [{name: entry for name, entry in one.items() if not entry[1]} for one in (files, found[key])]
        assert live[0] == live[1]


def test_a_deletion_of_what_is_not_there_is_kept() -> None:
    found = files_of(merged([files_layer({"a": {"f": (0, True), "g": (5, False)}}), files_layer({"a": {"g": (0, True)}})], Merging.FILES))
    assert found == {"a": {"f": (0, True)}}


def bloom_layer(records: dict[str, str]) -> Layer:
    texts = pa.array(list(records.values()), pa.string())
    return layer(list(records), bloom_filter_payloads(pa.repeat("SIMPLE", len(records)), pa.repeat("1", len(records)), texts))


@settings(max_examples=50)
@given(st.lists(st.dictionaries(KEYS, st.text(max_size=3), min_size=1) | st.lists(KEYS, unique=True), max_size=6), st.booleans())
def test_the_newest_of_other_records_counts_unless_it_was_deleted_after_that(steps: list[dict[str, str] | list[str]], based: bool) -> None:
    expected: dict[str, str] = {}
    for step in steps:
        expected = {key: text for key, text in expected.items() if key not in step} if isinstance(step, list) else {**expected, **step}
    layers = [bloom_layer(step) if isinstance(step, dict) else Layer.deletion(pa.array(step, pa.string())) for step in steps]
    layers = layers if based else [Layer.deletion(pa.array([], pa.string())), *layers]
    found = merged(layers, Merging.NEWEST)
    texts = [row["bloomFilter"].decode() for row in found.payloads.column("BloomFilterMetadata").to_pylist()]
    assert dict(zip((key.decode() for key in found.keys.to_pylist()), texts, strict=True)) == expected
    assert sorted(newest(layers).keys.to_pylist()) == sorted(key.encode() for key in expected)


def stats_layer(
    records: dict[str, tuple[Any, Any, int]], kind: pa.DataType, *, by_value_type: bool = True, is_tight: bool = False
) -> Layer:
    least, greatest = (pa.array([record[place] for record in records.values()], kind) for place in (0, 1))
    numbers = pa.array([record[2] for record in records.values()], pa.int64())
    counts = pa.table([numbers] * 4, names=COUNTS)
    names = pa.array(list(records), pa.string())
    return layer(list(records), stats_payloads(names, "c", least, greatest, counts, by_value_type=by_value_type, is_tight=is_tight))


def stats_of(records: Records, kind: pa.DataType) -> dict[str, tuple[Any, Any, int]]:
    stats = records.payloads.column("ColumnStatsMetadata").combine_chunks()
    least, greatest = stats_bounds(stats, kind)
    rows = zip(records.keys.to_pylist(), least.to_pylist(), greatest.to_pylist(), stats.field("valueCount").to_pylist(), strict=True)
    return {key.decode(): (low, high, count) for key, low, high, count in rows}


DECIMAL = pa.decimal128(12, 2)
VALUES = st.none() | st.integers(-(2**16), 2**16)
KINDS = [pa.int32(), pa.int64(), pa.float64(), pa.string(), DECIMAL, pa.date32()]
Step = dict[str, tuple[int | None, int | None, int]]
STEP = st.dictionaries(KEYS, st.tuples(VALUES, VALUES, st.integers(0, 9)), min_size=1)


@settings(max_examples=50)
@given(st.sampled_from(KINDS), st.booleans(), st.lists(STEP, max_size=4))
def test_statistics_of_one_file_widen(kind: pa.DataType, by_value_type: bool, steps: list[Step]) -> None:
    def value(number: int | None) -> Any:
        plain = pa.scalar(number, pa.int32())
        return plain.cast(kind).as_py() if number is not None else None

    typed = [{key: (value(low), value(high), count) for key, (low, high, count) in step.items()} for step in steps]
    expected: dict[str, tuple[Any, Any, int]] = {}
    for step in typed:
        for key, (low, high, count) in step.items():
            known = expected.get(key, (None, None, 0))
            lows, highs = ([one for one in pair if one is not None] for pair in ((low, known[0]), (high, known[1])))
            expected[key] = min(lows, default=None), max(highs, default=None), count + known[2]
    layers = [stats_layer(step, kind, by_value_type=by_value_type) for step in typed]
    assert stats_of(merged(layers, Merging.STATS), kind) == expected


def test_tight_statistics_take_the_place_of_older_ones() -> None:
    layers = [stats_layer({"a": (low, low + 1, 3)}, pa.int32(), is_tight=True) for low in (1, 7)]
    assert stats_of(merged(layers, Merging.STATS), pa.int32()) == {"a": (7, 8, 3)}


def test_bounds_of_different_types_are_not_merged() -> None:
    with pytest.raises(FormatError, match="different types"):
        merged([stats_layer({"a": (1, 2, 3)}, pa.int32()), stats_layer({"a": ("x", "y", 3)}, pa.string())], Merging.STATS)


def test_layers_of_different_schemas_are_read_together() -> None:
    older = record_schema(TableVersion.SIX)
    names, texts = pa.array(["x"]), pa.array([b"1"])
    layers = [layer(["a"], bloom_filter_payloads(names, names, texts), older), layer(["b"], bloom_filter_payloads(names, names, texts))]
    assert sorted(merged(layers, Merging.NEWEST).keys.to_pylist()) == [b"a", b"b"]


def test_tombstone_records_are_gone() -> None:
    payloads = secondary_index_payload(2)
    info = payloads.column("SecondaryIndexMetadata").combine_chunks()
    flags = pa.StructArray.from_arrays([pa.array(np.array([True, False]))], fields=list(info.type))
    payloads = payloads.set_column(1, "SecondaryIndexMetadata", flags)
    assert merged([layer(["a", "b"], payloads)], Merging.NEWEST).keys.to_pylist() == [b"b"]
