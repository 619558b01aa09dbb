"""What is joined is what `index_in` finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.record import matching
from lakehouse_engine.record.matching import first_repeated, matches


def expected(stored: pa.ChunkedArray, keys: pa.Array) -> tuple[list[int], list[int]]:
    first: dict[str | None, int] = {}
    for number, key in enumerate(keys.to_pylist()):
        first.setdefault(key, number)
    found = [(at, first[value]) for at, value in enumerate(stored.to_pylist()) if value in first]
    return [at for at, _ in found], [number for _, number in found]


def drawn(chance: np.random.Generator, most: int, *, unique: bool, nulls: bool) -> pa.Array:
    """Short keys and long ones, empty ones, and such as begin alike, of which some come twice unless they are unique."""
    numbers = chance.permutation(most)[: most // 2] if unique else chance.integers(0, most, most)
    texts: list[str | None] = ["k" * (int(number) % 7) + f"\u00e9\x00{number}" if number else "" for number in numbers]
    return pa.array([None if nulls and chance.random() < 0.1 else text for text in texts], pa.string())


@pytest.mark.parametrize("joined", [0, 1 << 40], ids=["joined", "looked up"])
@pytest.mark.parametrize("nulls", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("unique", [True, False])
def test_each_stored_value_finds_the_first_of_its_keys(
    joined: int, nulls: tuple[bool, bool], unique: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "JOINED", joined)
    chance = np.random.default_rng(5)
    for most in (0, 1, 2, 30, 500):
        keys = drawn(chance, most, unique=unique, nulls=nulls[1])
        parts = [drawn(chance, most + 3, unique=False, nulls=nulls[0]) for _ in range(int(chance.integers(0, 5)))]
        stored = pa.chunked_array(parts, pa.string())
        at, numbers = matches(stored, keys)
        assert (at.tolist(), numbers.tolist()) == expected(stored, keys)
        assert at.dtype == numbers.dtype == np.int64


def test_many_are_joined_and_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pc, "index_in", None)
    chance = np.random.default_rng(7)
    stored = pa.chunked_array([pa.array(chance.permutation(300_000).astype(str)) for _ in range(3)])
    keys = pa.array(chance.permutation(600_000)[:200_000].astype(str))
    at, numbers = matches(stored, keys)
    assert (np.diff(at) > 0).all()
    assert stored.take(pa.array(at)).combine_chunks().equals(keys.take(pa.array(numbers)))
    assert len(at) == pc.sum(pc.is_in(stored, value_set=keys)).as_py()



@pytest.mark.parametrize(
    ("keys", "found"),
    [([], None), (["a", "b"], None), (["a", "b", "c", "b", "a", "b"], ("a", 2)), (["c", "b", "b", "b"], ("b", 3))],
)
def test_the_first_repeated_key_is_told_with_its_number(keys: list[str], found: tuple[str, int] | None) -> None:
    texts = pa.array(keys, pa.string())
    assert first_repeated(texts) == found
    assert first_repeated(pa.chunked_array([texts[:2], texts[2:]])) == found
