from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.log.record_positions import decode_record_positions, encode_record_positions


def assert_comes_back(rows: list[int] | np.ndarray) -> None:
    numbers = np.array(rows, np.int64)
    assert np.array_equal(decode_record_positions(encode_record_positions(numbers)), numbers)


@given(st.sets(st.integers(0, 2**20) | st.integers(0, 2**40), max_size=200))
def test_positions_come_back(rows: set[int]) -> None:
    assert_comes_back(sorted(rows))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [0],
        [65535, 65536, 131071],
        [2**32 - 1, 2**32, 2**33 + 5],
        np.arange(4096),
        np.arange(0, 2 * 4096, 2),
        np.arange(0, 2 * 4097, 2),
        np.arange(1_000_000),
        np.flatnonzero(np.random.default_rng(7).random(400_000) < 0.5),
        np.concatenate([np.arange(10), [65536 * number for number in range(1, 6)]]),
        np.concatenate([np.arange(10), [65536, 65536 * 2]]),
    ],
    ids=["none", "one", "containers", "halves", "run", "full array", "bits", "million", "dense", "runs with places", "runs without places"],
)
def test_positions_of_every_form_come_back(rows: list[int] | np.ndarray) -> None:
    assert_comes_back(rows)


def test_text_is_that_of_hudi() -> None:
    """The first two are of headers that Hudi wrote."""
    runs = base64.b64encode(bytes.fromhex("0100000000000000000000003b30000001000005000200060004000c000000")).decode()
    assert encode_record_positions(np.array([6, 7, 8, 9, 10, 12])) == runs
    assert encode_record_positions(np.arange(4)) == base64.b64encode(
        bytes.fromhex("0100000000000000000000003b3000000100000300010000000300")
    ).decode("ascii")
    array = "01000000000000000000000 03a3000000100000000000100100000000100 0300".replace(" ", "")
    assert encode_record_positions(np.array([1, 3])) == base64.b64encode(bytes.fromhex(array)).decode()


@pytest.mark.parametrize("rows", [[1, 1], [2, 1], [-1, 0]])
def test_only_ascending_rows_are_written(rows: list[int]) -> None:
    with pytest.raises(FormatError, match="ascend"):
        encode_record_positions(np.array(rows, np.int64))


@pytest.mark.parametrize("text", ["", "####", "AA==", base64.b64encode(bytes.fromhex("01000000000000000000000000000000")).decode()])
def test_what_is_no_bitmap_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        decode_record_positions(text)


def test_positions_that_were_cut_or_go_on_are_refused() -> None:
    data = base64.b64decode(encode_record_positions(np.array([1, 3, 70_000, *range(80_000, 90_000, 2)])))
    for end in range(len(data)):
        with pytest.raises(FormatError):
            decode_record_positions(base64.b64encode(data[:end]).decode())
    with pytest.raises(FormatError, match="left behind"):
        decode_record_positions(base64.b64encode(data + b"\0").decode())


def test_mutated_positions_are_numbers_or_a_typed_error() -> None:
    data = base64.b64decode(encode_record_positions(np.array([*range(10), 70_000, *range(80_000, 90_000, 2), 2**33])))
    generator = np.random.default_rng(3)
    for _ in range(500):
        damaged = bytearray(data)
        damaged[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        try:
            found = decode_record_positions(base64.b64encode(bytes(damaged)).decode())
        except FormatError:
            continue
        assert bool((np.diff(found) > 0).all())
