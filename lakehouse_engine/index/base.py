"""The interface of an index, and the registry of indexes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.storage.base import Storage

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Keys of a batch: `keys[i]` is the record key of row `i`; `rows` are the row numbers of each partition path, ascending."""

    keys: pa.Array
    rows_by_partition: Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class TaggedFile:
    """Rows of a batch found in a base file: `rows[i]` is at row number `positions[i]`; positions ascend.

    `bounds` are the file's lowest and highest key, None if its statistics do not say.
    """

    base: BaseFile
    num_rows: int
    positions: Rows
    rows: Rows
    bounds: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Where keys of a batch are stored: in base files, and in which slices they may be, logs included, with row indices (ascending; None:
    any row of the batch).

    `exact`: each slice has all rows that are given for it, in its base file or its logs.
    """

    tagged: list[TaggedFile]
    places: Iterable[tuple[FileSlice, Rows | None]]
    exact: bool = False


class Slices(Protocol):
    """Current slices of a table, like `view.FileSystemView`."""

    def latest_slices(self, partition: str | None = None) -> list[FileSlice]: ...


class StoredKeys(Protocol):
    """Source of a base file's record keys: the meta column, or user columns if meta fields are off."""

    @property
    def meta_columns(self) -> Sequence[str]:
        """Meta columns to read."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """User columns to read."""
        ...

    @property
    def bounded(self) -> bool:
        """True if the meta column's Parquet statistics bound the record keys."""
        ...

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        """Record keys of rows that were read with those columns."""
        ...


class Index(Protocol):
    """Finds base files and row numbers of keys. Exact: no false hits, no missed keys."""

    @property
    def is_global(self) -> bool:
        """True if keys are unique in the whole table, not only in a partition."""
        ...

    def find(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> Found:
        """Every place where a key of the batch is stored now; base files without a hit are left out."""
        ...

    def fix(self) -> None:
        """Read now what must not change while other writers change the table. The caller holds the table lock."""
        ...
