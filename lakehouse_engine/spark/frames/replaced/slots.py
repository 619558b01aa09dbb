"""A perfect hash table: distinct numbers get distinct places, which three operations on bits find again.

The lowest bits of a number give its group; the bits above, displaced by a number of the group, give its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slots:
    """A number n is at `((n >> bits) ^ displacements[n & m]) & m` with `m = 2**bits - 1`; `places` are those of the given numbers."""

    bits: int
    displacements: Longs
    places: Longs

    @property
    def count(self) -> int:
        """Number of places."""
        return 1 << self.bits

    @classmethod
    def of(cls, numbers: Longs) -> Slots:
        """A table for distinct numbers, with at least twice as many places."""
        bits = max(1, int(2 * len(numbers) - 1).bit_length())
        while True:
            displacements = _displaced(numbers, bits)
            if displacements is not None:
                mask = (1 << bits) - 1
                return cls(bits, displacements, ((numbers >> bits) ^ displacements[numbers & mask]) & mask)
            bits += 1


def _displaced(numbers: Longs, bits: int) -> Longs | None:
    """The displacement of each group, largest groups first; None if two numbers would share a place."""
    count = 1 << bits
    groups, members, sizes = np.unique(numbers & (count - 1), return_inverse=True, return_counts=True)
    above = np.split(((numbers >> bits) & (count - 1))[np.argsort(members, kind="stable")], np.cumsum(sizes)[:-1])
    displacements, taken = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for group in sorted(np.flatnonzero(sizes > 1), key=lambda group: -sizes[group]):
        if len(np.unique(above[group])) < sizes[group]:
            return None
        free = ~taken[above[group][:, None] ^ np.arange(count)].any(axis=0)
        if not free.any():
            return None
        displacements[groups[group]] = free.argmax()
        taken[above[group] ^ free.argmax()] = True
    alone = np.flatnonzero(sizes == 1)
    displacements[groups[alone]] = np.flatnonzero(~taken)[: len(alone)] ^ np.array([above[group][0] for group in alone], np.int64)
    return displacements
