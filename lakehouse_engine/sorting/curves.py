"""Computes the places of many points on space-filling curves.

A point has one coordinate per column, whole numbers of `bits` bits (at most 16). Its key is a number of `bits * columns` bits, as 64-bit
words, the most significant first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lakehouse_engine.sorting.layout import SortLayout

Coordinates = npt.NDArray[np.uint16]
"""Coordinates of points, one row per column: (columns, points)."""

Keys = npt.NDArray[np.uint64]
"""Keys of points: (words, points)."""

MOST_BITS = 16
_WORD = 64
_BLOCK = 32_768
"""Points computed together, so that intermediate results stay in the processor's cache."""


def places(coordinates: Coordinates, bits: int, layout: SortLayout) -> Keys:
    """Keys of points on a layout's curve. LINEAR puts the coordinates one after the other."""
    columns, points = coordinates.shape
    order = _in_turn if layout is not SortLayout.LINEAR else _one_after_the_other
    tables = [_spread(columns, bits, [order(column, columns, bits, bit) for bit in range(bits)]) for column in range(columns)]
    keys = np.zeros((len(tables[0]), points), np.uint64)
    for low in range(0, points, _BLOCK):
        block = coordinates[:, low : low + _BLOCK]
        if layout is SortLayout.HILBERT:
            block = _hilbert(block, bits)
        for table, values in zip(tables, block, strict=True):
            for word, spread in enumerate(table):
                keys[word, low : low + _BLOCK] |= spread[values]
    return keys


def _in_turn(column: int, columns: int, bits: int, bit: int) -> int:
    """Bit of the key for a bit of a coordinate, if columns take turns."""
    return bit * columns + (columns - 1 - column)


def _one_after_the_other(column: int, columns: int, bits: int, bit: int) -> int:
    return (columns - 1 - column) * bits + bit


def _spread(columns: int, bits: int, targets: Sequence[int]) -> Keys:
    """Key for every value of a coordinate, with its bits moved to `targets`: (words, 2**bits)."""
    words = -(-columns * bits // _WORD)
    values = np.arange(2**bits, dtype=np.uint64)
    spread = np.zeros((words, len(values)), np.uint64)
    for bit, target in enumerate(targets):
        spread[words - 1 - target // _WORD] |= ((values >> np.uint64(bit)) & np.uint64(1)) << np.uint64(target % _WORD)
    return spread


def _hilbert(coordinates: Coordinates, bits: int) -> Coordinates:
    """Coordinates whose bits, taken in turn, give the place on the Hilbert curve.

    Source: J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004), from axes to the transposed index.
    """
    axes: Coordinates = coordinates.copy()
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        below = np.uint16(2**bit - 1)
        for axis in axes:
            upper = _mask(axis, bit)
            exchanged = (first ^ axis) & below & ~upper
            first ^= (upper & below) | exchanged
            axis ^= exchanged
    for before, axis in itertools.pairwise(axes):
        axis ^= before
    turned = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        turned ^= _mask(axes[-1], bit) & np.uint16(2**bit - 1)
    axes ^= turned
    return axes


def _mask(axis: Coordinates, bit: int) -> Coordinates:
    """All bits set where this bit is set."""
    return np.asarray(np.negative((axis >> np.uint16(bit)) & np.uint16(1)), np.uint16)
