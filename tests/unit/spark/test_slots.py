"""Perfect hash tables: numbers of every kind get places of their own, by the formula that a query uses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lakehouse_engine.spark.frames.replaced.slots import Slots

_KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "like sizes": lambda count: np.random.default_rng(1).choice(40_000_000, count, replace=False),
    "hashes": lambda count: np.random.default_rng(2).integers(-(2**63), 2**63 - 1, count),
    "pages": lambda count: np.arange(count) * 4096,
    "equal in their low bits": lambda count: np.arange(count) * 2**20 + 5,
}


@pytest.mark.parametrize("count", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("kind", list(_KINDS))
def test_each_number_has_a_place_of_its_own(kind: str, count: int) -> None:
    numbers = _KINDS[kind](count).astype(np.int64)
    slots = Slots.of(numbers)
    mask = slots.count - 1
    places = [((number >> slots.bits) ^ int(slots.displacements[number & mask])) & mask for number in numbers.tolist()]
    assert len(set(places)) == count
    assert places == slots.places.tolist()
    assert len(slots.displacements) == slots.count


def test_there_are_few_more_places_than_numbers_that_are_hashes() -> None:
    assert Slots.of(_KINDS["hashes"](10_000)).count <= 65_536
