"""What is known of the rows of base files before reading them: reads skip files by it, and merges look keys up in fewer of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.statistics import guarantees_of
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of

Bounds = tuple[str, str]
"""Lowest and highest record key of a file, both inclusive."""


class FileGuarantees(Protocol):
    """Statistics of base files. Implementations are hashable, and equal ones give the same guarantees. Methods may run in threads."""

    def rows(self, storage: Storage, file: BaseFile, wanted: RowFilter, *, verify: bool = True) -> Sequence[pc.Expression]:
        """What holds for the rows of a file in the columns of a filter: for each row one of the expressions is true. If nothing is known of
        a file it is `true`; a file without rows has none.

        With `verify`, the sources are checked if they have checksums. Raises as `base_file_metadata` if the file is opened.
        """
        ...

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> Sequence[Bounds | None]:
        """Bounds of the record keys of each file, None if unknown. No file is opened."""
        ...


@dataclass(frozen=True, slots=True)
class FromFooters:
    """Guarantees from the footers of the files. Bounds of keys are known for files that this process has opened."""

    def rows(self, storage: Storage, file: BaseFile, wanted: RowFilter, *, verify: bool = True) -> list[pc.Expression]:
        return [one for _, one in guarantees_of(FOOTERS.read(storage, file, verify=verify), wanted, file.path)]

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> list[Bounds | None]:
        if identity_of(storage) is None:
            return [None] * len(bases)
        return [_BOUNDS.get(_key(storage, base)) for base in bases]


FROM_FOOTERS = FromFooters()


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
