"""Curves against what defines them: Z-order is the bits in turn, and the Hilbert curve goes through every cell in steps of one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.sorting.curves import Coordinates, Keys, places
from lakehouse_engine.sorting.layout import SortLayout

SHAPES = [(1, 5), (2, 2), (2, 4), (3, 3), (4, 2), (5, 2)]


def grid(columns: int, bits: int) -> Coordinates:
    """Every cell once."""
    return np.array(list(itertools.product(range(2**bits), repeat=columns)), np.uint16).T


def whole(keys: Keys) -> list[int]:
    """Keys as whole numbers of any length."""
    return [sum(int(word) << (64 * place) for place, word in enumerate(reversed(point))) for point in keys.T]


def interleaved(point: tuple[int, ...], bits: int) -> int:
    """The bits of a point's coordinates in turn, the highest first, written as text."""
    texts = [f"{value:0{bits}b}" for value in point]
    return int("".join(text[place] for place in range(bits) for text in texts), 2)


@st.composite
def points(draw: st.DrawFn) -> tuple[Coordinates, int]:
    bits, columns = draw(st.integers(2, 16)), draw(st.integers(1, 9))
    rows = draw(st.lists(st.tuples(*[st.integers(0, 2**bits - 1)] * columns), min_size=1, max_size=20))
    return np.array(rows, np.uint16).T, bits


@given(points())
def test_z_order_keys_are_the_bits_of_the_coordinates_in_turn(given: tuple[Coordinates, int]) -> None:
    coordinates, bits = given
    expected = [interleaved(tuple(int(value) for value in point), bits) for point in coordinates.T]
    assert whole(places(coordinates, bits, SortLayout.Z_ORDER)) == expected


@given(points())
def test_linear_keys_compare_as_the_coordinates_one_after_the_other(given: tuple[Coordinates, int]) -> None:
    coordinates, bits = given
    keys = whole(places(coordinates, bits, SortLayout.LINEAR))
    rows = [tuple(point) for point in coordinates.T]
    assert sorted(range(len(rows)), key=lambda row: keys[row]) == sorted(range(len(rows)), key=lambda row: rows[row])


@pytest.mark.parametrize(("columns", "bits"), SHAPES)
def test_the_hilbert_curve_visits_each_cell_once_and_goes_to_a_neighbour(columns: int, bits: int) -> None:
    cells = grid(columns, bits)
    keys = whole(places(cells, bits, SortLayout.HILBERT))
    assert sorted(keys) == list(range(2 ** (columns * bits)))
    visited = cells.T[np.argsort(keys)].astype(int)
    assert (np.abs(np.diff(visited, axis=0)).sum(axis=1) == 1).all()


@given(points())
def test_hilbert_keys_of_points_differ_where_the_points_do(given: tuple[Coordinates, int]) -> None:
    coordinates, bits = given
    keys = whole(places(coordinates, bits, SortLayout.HILBERT))
    assert len(set(keys)) == len({tuple(point) for point in coordinates.T})
    assert max(keys) < 2 ** (bits * len(coordinates))


@pytest.mark.parametrize("layout", [SortLayout.Z_ORDER, SortLayout.HILBERT])
def test_points_are_left_as_they_were_and_blocks_join(layout: SortLayout) -> None:
    coordinates = np.random.default_rng(1).integers(0, 1024, (3, 70_001)).astype(np.uint16)
    before = coordinates.copy()
    keys = places(coordinates, 10, layout)
    assert (coordinates == before).all()
    for low in (0, 32_767, 32_768, 70_000):
        assert (keys[:, low : low + 1] == places(coordinates[:, low : low + 1], 10, layout)).all()
