"""Where the bits of files' rows are, as the filter looks for them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from lakehouse_engine.spark.frames.logged.effects import ThinnedFile
from lakehouse_engine.spark.frames.replaced import numbered
from lakehouse_engine.spark.frames.replaced.numbered import _places, words_of


def thinned(rows: int, removed: Sequence[int]) -> ThinnedFile:
    return ThinnedFile(f"p/{rows}.parquet", -1, rows, np.array(sorted(removed), np.int64))


def is_gone(words: np.ndarray, place: int, row: int) -> bool:
    """As the filter has it: a word is shifted until the row's bit is its sign."""
    shifted = (int(words[place | row >> 6]) << (row & 63)) & (1 << 64) - 1
    return shifted >= 1 << 63


@pytest.mark.parametrize("seed", range(20))
def test_each_row_has_a_bit_of_its_own(seed: int) -> None:
    chance = random.Random(seed)
    counts = [chance.choice([0, 1, 63, 64, 65, 127, 128, 129, chance.randint(1, 5000)]) for _ in range(chance.randint(1, 9))]
    files = [thinned(count, chance.sample(range(count), chance.randint(0, count))) for count in counts]
    places = _places(files)
    assert places is not None
    words = words_of(files, places)
    bits = [(place | row >> 6, row & 63) for file, place in zip(files, places, strict=True) for row in range(file.rows)]
    assert len(set(bits)) == len(bits)
    for file, place in zip(files, places, strict=True):
        gone = set(file.removed.tolist())
        assert all(is_gone(words, place, row) == (row in gone) for row in range(file.rows))


def test_of_too_many_rows_there_are_no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "MOST_WORDS", 3)
    assert _places([thinned(128, []), thinned(64, [])]) == [0, 2]
    assert _places([thinned(129, [])]) is None
    assert _places([thinned(128, []), thinned(64, []), thinned(1, [])]) is None
