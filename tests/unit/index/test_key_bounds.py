from __future__ import annotations

import random
from bisect import bisect_left, bisect_right

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.files.footer import BaseFileFooter, KeyRange
from lakehouse_engine.index import key_bounds
from lakehouse_engine.index.key_bounds import bounds_of, enclosing

TEXTS = ["", "a", "a\0", "b", "bb", "é", "z", "\U0001f600", "ﬀ"]


def footer(*ranges: tuple[str | None, str | None]) -> BaseFileFooter:
    return BaseFileFooter(0, None, None, None, None, tuple(KeyRange(1, low, high) for low, high in ranges))


@pytest.mark.parametrize("seed", range(5))
def test_files_are_kept_whose_bounds_enclose_a_key(seed: int) -> None:
    chance = random.Random(seed)
    bounds = [tuple(sorted(chance.choices(TEXTS, k=2), key=str.encode)) for _ in range(30)]
    keys = sorted(chance.sample(TEXTS, 3), key=str.encode)
    encoded = [key.encode() for key in keys]
    expected = [bisect_left(encoded, low.encode()) < bisect_right(encoded, high.encode()) for low, high in bounds]
    shuffled = chance.sample(keys, len(keys))
    assert enclosing(bounds, pa.array(shuffled, pa.string())).tolist() == expected
    assert any(expected)
    assert not all(expected)


def test_of_many_keys_the_first_and_last_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_bounds, "_MOST_SORTED", 2)
    keys = pa.array(["d", "h", "f"])
    assert enclosing([("a", "c"), ("a", "d"), ("e", "e"), ("h", "z"), ("i", "z")], keys).tolist() == [False, True, True, True, False]


def test_no_key_is_in_no_file() -> None:
    assert not np.any(enclosing([("a", "z")], pa.array([], pa.string())))
    assert len(enclosing([], pa.array(["a"]))) == 0


def test_bounds_are_those_of_all_row_groups_or_unknown() -> None:
    assert bounds_of(footer(("b", "c"), ("a", "b"))) == ("a", "c")
    assert bounds_of(footer(("b", "c"), (None, None))) is None
    assert bounds_of(footer()) is None
