"""Guarantees that were found for some files: which of them a filter rules out, and what of it a process remembers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.row_filter import Guaranteed, RowFilter
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of


@dataclass(frozen=True, slots=True)
class Told:
    """Guarantees of some files: `owners[i]` is the number of the file to which guarantee i belongs."""

    owners: tuple[int, ...]
    sets: Guaranteed

    @classmethod
    def of(cls, found: Sequence[Sequence[pc.Expression]], wanted: RowFilter) -> Told:
        """`found` has the alternatives for each file: each of its rows satisfies one of them. A file without rows has none."""
        owners = tuple(number for number, guarantees in enumerate(found) for _ in guarantees)
        return cls(owners, Guaranteed.of([one for guarantees in found for one in guarantees], wanted.schema))

    def ruled_out(self, files: Sequence[BaseFile], wanted: RowFilter) -> frozenset[str]:
        """Paths of the files in which the filter is true for no row."""
        chosen = {number for number, may in zip(self.owners, wanted.may_hold_in(self.sets), strict=True) if may}
        return frozenset(file.path for number, file in enumerate(files) if number not in chosen)


def remembered(
    source: Hashable, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, find: Callable[[], Told | None]
) -> Told | None:
    """What `find` finds for the files and the filter's columns, or found before in this process: a file never changes under its name.

    `source` distinguishes where it looks. None, if it does not know, is not remembered.
    """
    identity = identity_of(storage)
    if identity is None:
        return find()  # in memory two tables may have the same name
    key = source, identity, wanted.schema, wanted.columns, wanted.rounds, tuple((file.path, file.size) for file in files)
    told = _KNOWN.get(key)
    if told is None:
        told = find()
        if told is not None:
            _KNOWN.put(key, told)
    return told


_KNOWN: BoundedCache[Told] = BoundedCache(100_000, lambda told: 1 + len(told.owners))
"""For the tables last read with a filter, by the filter's columns."""
