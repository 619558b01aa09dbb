"""What an index answers, and the registry of those that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The keys of a batch: `keys[i]` is the record key of row `i`, `rows` numbers the rows of each partition path, ascending."""

    keys: pa.Array
    rows_by_partition: Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class TaggedFile:
    """Rows of a batch found in a base file: `rows[i]` is at row number `positions[i]`; positions ascend.

    `bounds` are the lowest and the highest key of the file, None where its statistics do not tell.
    """

    base: BaseFile
    num_rows: int
    positions: Rows
    rows: Rows
    bounds: tuple[str, str] | None = None


class Slices(Protocol):
    """The slices that make a table now, as `view.FileSystemView` has them."""

    def latest_slices(self, partition: str | None = None) -> list[FileSlice]: ...


class StoredKeys(Protocol):
    """How the record keys of a base file are had: from the meta column, or from user columns where meta fields are off."""

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
        """Whether the Parquet statistics of the meta column bound the record keys."""
        ...

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        """The record keys of rows read with those columns."""
        ...


class Index(Protocol):
    """Finds the base files and row numbers of keys. Tells nothing but the truth: no false hit, no missed key."""

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the whole table, not only in its partition."""
        ...

    def tag(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> list[TaggedFile]:
        """Every place where a key of the batch is stored now; files without a hit are left out."""
        ...
