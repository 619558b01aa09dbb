"""Facts about the rows of base files, known without reading the rows: reads skip files by them, and merges look up keys in fewer files."""

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
        """Guarantees for the rows of a file in a filter's columns: each row satisfies at least one of the expressions.

        A file about which nothing is known has the expression `true`; a file without rows has none. `verify` checks the checksums of the
        data used, if it has any. Raises as `base_file_metadata` if the file is opened.
        """
        ...

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> Sequence[Bounds | None]:
        """Bounds of each file's record keys; None if they are unknown. Opens no file."""
        ...


@dataclass(frozen=True, slots=True)
class FromFooters:
    """Guarantees from the files' footers. Key bounds are known for files that this process has opened."""

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
"""Shared by all tables of this process: a file never changes under its name."""
