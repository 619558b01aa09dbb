"""Filters against a reference that goes key by key and byte by byte."""

from __future__ import annotations

import base64
import math
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError, OptionError, RecordKeyError
from lakehouse_engine.format.bloom import BloomFilter, build_bloom_filter

_WORD = 0xFFFFFFFF
_M = 0x5BD1E995
_KEYS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=60)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _murmur(key: bytes, seed: int) -> int:
    length, hashed = len(key), (seed ^ len(key)) & _WORD
    for at in range(0, length - 3, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _M & _WORD
        hashed = hashed * _M & _WORD ^ (word ^ word >> 24) * _M & _WORD
    if length & 3:
        for back in range(1, (length & 3) + 1):
            hashed ^= _signed(key[length - back]) << 8 * (back - 1) & _WORD
        hashed = hashed * _M & _WORD
    hashed = (hashed ^ hashed >> 13) * _M & _WORD
    return hashed ^ hashed >> 15


def _bits_of(key: str, nb_hash: int, size: int) -> list[int]:
    bits, hashed = [], 0
    for _ in range(nb_hash):
        hashed = _murmur(key.encode(), hashed)
        signed = hashed - (1 << 32) if hashed >> 31 else hashed
        bits.append(abs(int(math.fmod(signed, size))))
    return bits


def _fill(rows: list[bytearray], row: int, key: str, nb_hash: int, size: int) -> None:
    for bit in _bits_of(key, nb_hash, size):
        rows[row][bit >> 3] |= 1 << (bit & 7)


def _grown(keys: list[str], nb_hash: int, size: int, per_row: int, most: int) -> tuple[tuple[bytes, ...], int]:
    """Hudi's growing filter, state by state: its rows, and the counter of the last one."""
    rows, counter, turn, full = [bytearray((size + 7) // 8)], 0, 0, False
    for key in keys:
        if full:
            row, turn = turn % len(rows), turn + 1
        elif counter < per_row:
            row = len(rows) - 1
        elif len(rows) * per_row < most:
            rows.append(bytearray((size + 7) // 8))
            row, counter = len(rows) - 1, 0
        else:
            row, full = 0, True
        _fill(rows, row, key, nb_hash, size)
        counter += 1
    return tuple(map(bytes, rows)), counter


@settings(max_examples=60)
@given(_KEYS)
def test_a_simple_filter_has_the_bits_of_the_reference(keys: list[str]) -> None:
    built = build_bloom_filter(pa.array(keys, pa.string()), kind="SIMPLE", entries=1, fpp=1e-3, max_entries=1)
    assert (built.nb_hash, built.vector_size) == (10, 14378)
    assert built.rows == _grown(keys, built.nb_hash, built.vector_size, 1000, 1000)[0]


def test_few_keys_of_a_length_have_the_bits_that_many_of_them_have() -> None:
    texts = [f"{number:02d}" + "ключ-" * length + "x" * (length % 5) for length in (0, 1, 2, 3, 4, 40, 700) for number in range(20)]
    many = build_bloom_filter(pa.array(texts), kind="SIMPLE", entries=1, fpp=1e-9, max_entries=1)
    few = build_bloom_filter(pa.array(texts[:0]), kind="SIMPLE", entries=1, fpp=1e-9, max_entries=1)
    for number in range(20):
        grown = few.with_keys(pa.array(texts[number::20]))
        assert grown is not None
        few = grown
    assert few.rows == many.rows == _grown(texts, many.nb_hash, many.vector_size, 1000, 1000)[0]


def test_key_of_megabytes_is_hashed_in_seconds() -> None:
    began = time.process_time()
    built = build_bloom_filter(pa.array(["k" * 1_000_001]), kind="SIMPLE", entries=1, fpp=1e-9, max_entries=1)
    assert time.process_time() - began < 15
    assert built.nb_hash == 30


@settings(max_examples=60)
@given(_KEYS, st.integers(1, 20), st.integers(1, 80))
def test_a_growing_filter_has_the_rows_of_the_reference(keys: list[str], entries: int, max_entries: int) -> None:
    built = build_bloom_filter(pa.array(keys, pa.string()), kind="DYNAMIC_V0", entries=entries, fpp=1e-2, max_entries=max_entries)
    assert (built.rows, built.keys_in_last_row) == _grown(keys, built.nb_hash, built.vector_size, entries, max_entries)
    assert built.keys_per_row == entries


@settings(max_examples=60)
@given(_KEYS, st.sampled_from(["SIMPLE", "DYNAMIC_V0"]), st.integers(1, 30))
def test_filters_come_back_from_base64_and_hold_their_keys(keys: list[str], kind: str, entries: int) -> None:
    array = pa.array(keys, pa.string())
    built = build_bloom_filter(array, kind=kind, entries=entries, fpp=1e-3, max_entries=50)
    read = BloomFilter.from_base64(built.to_base64(), kind)
    assert read == built
    assert read.might_contain(array).all()


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_the_form_of_the_arrow_data_does_not_matter(kind: str) -> None:
    keys = [f"kéy-{'x' * (number % 9)}{number}" for number in range(40_000)]
    plain = pa.array(keys)

    def built(array: pa.Array | pa.ChunkedArray) -> BloomFilter:
        return build_bloom_filter(array, kind=kind, entries=15_000, fpp=1e-3, max_entries=30_000)

    expected = built(plain)
    padded = pa.array(["other", *keys, "more"])
    assert built(padded.slice(1, len(keys))) == expected
    assert built(pa.chunked_array([plain.slice(0, 7), plain.slice(7, 0), plain.slice(7, 20_000), plain.slice(20_007)])) == expected
    assert built(plain.cast(pa.large_string())) == expected
    assert built(plain.dictionary_encode()) == expected


def test_known_filter_of_hudi() -> None:
    # `num_entries` 50 and a rate of 1e-6, as in the footers of Hudi's own small files.
    built = build_bloom_filter(pa.array(["id:1"]), kind="DYNAMIC_V0", entries=50, fpp=1e-6, max_entries=100)
    assert (built.nb_hash, built.vector_size) == (20, 1438)
    assert base64.b64decode(built.to_base64())[:25].hex() == "ffffffff00000014010000059e000000320000000100000001"


def test_hudi_defaults_have_the_known_shape() -> None:
    built = build_bloom_filter(pa.array(["a"]), kind="DYNAMIC_V0", entries=60_000, fpp=1e-9, max_entries=100_000)
    assert (built.nb_hash, built.vector_size, len(built.to_base64())) == (30, 2_587_966, 431_380)


def test_a_simple_filter_is_sized_to_its_keys_and_keeps_its_rate() -> None:
    keys = pa.array([f"customer_{number:011d}" for number in range(100_000)])
    built = build_bloom_filter(keys, kind="SIMPLE", entries=1, fpp=1e-3, max_entries=1)
    assert built.vector_size == math.ceil(100_000 * -math.log(1e-3) / math.log(2) ** 2)
    others = pa.array([f"other_{number}" for number in range(20_000)])
    assert np.mean(built.might_contain(others)) < 3e-3


def test_more_keys_are_taken_until_the_filter_is_full() -> None:
    first, more = pa.array([f"a{number}" for number in range(500)]), pa.array([f"b{number}" for number in range(400)])
    built = build_bloom_filter(first, kind="SIMPLE", entries=1, fpp=1e-3, max_entries=1)
    grown = built.with_keys(more)
    assert grown == build_bloom_filter(pa.concat_arrays([first, more]), kind="SIMPLE", entries=1, fpp=1e-3, max_entries=1)
    assert built.with_keys(pa.array([f"c{number}" for number in range(5000)])) is None
    assert built.with_keys(pa.array([], pa.string())) == built


def test_a_growing_filter_takes_more_keys_until_its_row_is_full() -> None:
    built = build_bloom_filter(pa.array(["a", "b", "c"]), kind="DYNAMIC_V0", entries=2, fpp=1e-3, max_entries=4)
    assert (len(built.rows), built.keys_in_last_row) == (2, 1)
    assert built.with_keys(pa.array(["d"])) == build_bloom_filter(
        pa.array(["a", "b", "c", "d"]), kind="DYNAMIC_V0", entries=2, fpp=1e-3, max_entries=4
    )
    assert built.with_keys(pa.array(["d", "e"])) is None


def test_a_null_key_is_refused() -> None:
    with pytest.raises(RecordKeyError):
        build_bloom_filter(pa.array(["a", None]), kind="SIMPLE", entries=1, fpp=1e-3, max_entries=1)


@pytest.mark.parametrize(("kind", "entries", "fpp"), [("OTHER", 1, 0.1), ("SIMPLE", 1, 0.0), ("SIMPLE", 1, 1.0), ("DYNAMIC_V0", 0, 0.1)])
def test_impossible_settings_are_refused(kind: str, entries: int, fpp: float) -> None:
    with pytest.raises(OptionError):
        build_bloom_filter(pa.array(["a"]), kind=kind, entries=entries, fpp=fpp, max_entries=1)


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_every_cut_of_a_filter_is_refused(kind: str) -> None:
    whole = base64.b64decode(build_bloom_filter(pa.array(["a"]), kind=kind, entries=5, fpp=0.1, max_entries=5).to_base64())
    lengths = [*range(60), *range(max(60, len(whole) - 5), len(whole))]
    for data in [whole[:length] for length in lengths if length < len(whole)] + [whole + b"\0", b"\0" * len(whole)]:
        with pytest.raises(FormatError):
            BloomFilter.from_base64(base64.b64encode(data).decode(), kind)


def test_text_that_is_not_base64_is_refused() -> None:
    with pytest.raises(FormatError):
        BloomFilter.from_base64("???", "SIMPLE")
