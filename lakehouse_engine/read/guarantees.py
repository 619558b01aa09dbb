"""What is known of the rows of base files before reading them: reads skip files by it, and merges look keys up in fewer of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.statistics import guarantees_of
from lakehouse_engine.read.told import Told, remembered
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of

Bounds = tuple[str, str]
"""Lowest and highest record key of a file, both inclusive."""


class FileGuarantees(Protocol):
    """What a source knows of base files and of the rows of file groups. Methods may be asked of any files of one table, in any order."""

    def groups(self, wanted: RowFilter, slices: int) -> Collection[FileGroupId] | None:
        """The file groups that have all rows for which the filter is true, logs included; None if unknown, or not worth the asking of a
        reader that would open `slices`. No data file is opened.
        """
        ...

    def without_rows(
        self, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, *, verify: bool = True
    ) -> frozenset[str]:
        """Paths of those files in which the filter is true for no row; files of which nothing is known are not among them.

        With `verify`, the sources are checked if they have checksums. Raises as `base_file_metadata` if files are opened.
        """
        ...

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> Sequence[Bounds | None]:
        """Bounds of the record keys of each file, None if unknown. No file is opened."""
        ...


@dataclass(frozen=True, slots=True)
class FromFooters:
    """Guarantees from the footers of the files, which threads of this process open once. Bounds of keys are known for files that this
    process has opened.
    """

    def groups(self, wanted: RowFilter, slices: int) -> None:
        return None

    def without_rows(
        self, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, *, verify: bool = True
    ) -> frozenset[str]:
        def read(file: BaseFile) -> list[pc.Expression]:
            return [one for _, one in guarantees_of(FOOTERS.read(storage, file, verify=verify), wanted, file.path)]

        def find() -> Told:
            return Told.of(looking_runner(local_runner({}), storage).run(read, files, name="footers"), wanted)

        told = remembered(("footers", verify), storage, files, wanted, find)
        return frozenset() if told is None else told.ruled_out(files, wanted)

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> list[Bounds | None]:
        if identity_of(storage) is None:
            return [None] * len(bases)
        return [_BOUNDS.get(_key(storage, base)) for base in bases]


FROM_FOOTERS = FromFooters()


@dataclass(frozen=True, slots=True)
class InTurn:
    """Several sources, the cheapest first: each is asked about what those before it left."""

    sources: tuple[FileGuarantees, ...] = ()

    def groups(self, wanted: RowFilter, slices: int) -> Collection[FileGroupId] | None:
        found = (source.groups(wanted, slices) for source in self.sources)
        return next((groups for groups in found if groups is not None), None)

    def without_rows(
        self, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, *, verify: bool = True
    ) -> frozenset[str]:
        out: frozenset[str] = frozenset()
        for source in self.sources:
            left = [file for file in files if file.path not in out]
            out |= source.without_rows(storage, left, wanted, verify=verify) if left else frozenset()
        return out

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> list[Bounds | None]:
        known: list[Bounds | None] = [None] * len(bases)
        for source in self.sources:
            lacking = [number for number, bounds in enumerate(known) if bounds is None]
            for number, bounds in zip(lacking, source.keys(storage, [bases[number] for number in lacking]), strict=True):
                known[number] = bounds
        return known


def learn_keys(storage: Storage, found: Iterable[tuple[BaseFile, Bounds | None]]) -> None:
    """Remember the key bounds of files that were opened."""
    if identity_of(storage) is None:
        return
    for base, bounds in found:
        if bounds is not None and base.size >= 0:
            _BOUNDS.put(_key(storage, base), bounds)


def _key(storage: Storage, base: BaseFile) -> Hashable:
    return identity_of(storage), base.path, base.size


_OVERHEAD = 300
"""Size in bytes of an entry, besides its two keys."""
_BOUNDS: BoundedCache[Bounds] = BoundedCache(64 * 1024 * 1024, lambda bounds: _OVERHEAD + len(bounds[0]) + len(bounds[1]))
"""Bounds for all tables of this process: a file never changes under its name."""
