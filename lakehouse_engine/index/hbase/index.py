"""HBASE index: entries in HBase say in which file group a key is, and only the files of those groups are opened.

The row number comes from the file. A key without an entry, whose entry names no live file group, or that is not in that group, is new
(Hudi `SparkHoodieHBaseIndex`). In other processes, keys are compared with all files, which has the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import OptionError
from lakehouse_engine.index.base import Found, KeyedRows, Rows, Slices, StoredKeys
from lakehouse_engine.index.hbase.entries import Entries, check_possible, has_hbase_index, stored_hbase_options
from lakehouse_engine.index.named_places import by_group, tagged_in
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import INDEX_TYPE, WriteOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.record.matching import matches
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState


@dataclass(slots=True)
class StoredEntries:
    """Entries of a table's state, brought to order when they are first asked for."""

    entries: Entries
    _is_settled: bool = False

    def find(self, keys: pa.Array) -> pa.Table:
        """Entries of distinct keys. Raises as `Entries.settle` and `HBaseClient.find`."""
        if not self._is_settled:
            self.entries.settle()
            self._is_settled = True
        return self.entries.client.find(keys)


@dataclass(frozen=True, slots=True)
class HBaseIndex:
    """A key is unique in the table. Without `told`, and in other processes, it compares keys with all files."""

    told: StoredEntries | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Callable[..., HBaseIndex], tuple[Any, ...]]:
        return HBaseIndex, ()

    @property
    def is_global(self) -> bool:
        return True

    def of(self, state: TableState) -> HBaseIndex:
        """The index of a table's state. Raises as `check_possible`."""
        return HBaseIndex(StoredEntries(Entries.of(state)))

    @property
    def checks_partitions(self) -> bool:
        """True if `find` checks that the partitions with keys of the batch are complete, so that no other needs a look."""
        return self.told is not None

    def fix(self) -> None:
        """Does nothing: a writer of table version 6 keeps the lock."""

    def find(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> Found:
        """Like `Index.find`; the caller has checked the partitions of the batch. Raises as `StoredEntries.find` and `check_complete`."""
        if self.told is None:
            return KeyColumnIndex(is_global=True, use_bloom=False).find(storage, view, batch, stored, runner)
        places = self._places(self.told, view, batch)
        return Found(tagged_in(storage, places, batch.keys, stored, runner), places)

    def _places(self, told: StoredEntries, view: Slices, batch: KeyedRows) -> list[tuple[FileSlice, Rows]]:
        """Live slices that entries name, with the rows (ascending) whose keys may be there."""
        if not len(batch.keys):
            return []
        entries = told.find(pc.unique(batch.keys))
        at, number = matches(entries.column("key"), batch.keys)
        groups = list(by_group([(entries.take(pa.array(at)), number)]))
        others = {group.partition_path for group, _ in groups} - batch.rows_by_partition.keys()
        if others:
            check_complete(told.entries.state, frozenset(others))
        slices: dict[str, dict[str, FileSlice]] = {}
        found: list[tuple[FileSlice, Rows]] = []
        for group, rows in groups:
            path = group.partition_path
            if path not in slices:
                slices[path] = {piece.file_id: piece for piece in view.latest_slices(path)}
            piece = slices[path].get(group.file_id)
            if piece is not None:
                found.append((piece, np.sort(rows)))
        return found


def hbase_index(config: TableConfig, options: WriteOptions) -> HBaseIndex:
    """The HBASE index of a write, before it is given a state. Raises as `check_possible`."""
    check_possible(config, options.hbase)
    return HBaseIndex()


def check_own_index(config: TableConfig, options: WriteOptions) -> None:
    """Raise `OptionError` for a write by an HBASE index that the table does not have, since its other writers, services and rollbacks would
    not keep that up.
    """
    if not has_hbase_index(config):
        raise OptionError(
            f"{INDEX_TYPE.key}=HBASE: the table has no HBASE index that its writes keep up; `lakehouse index rebuild {config.name}` fills"
            " one from the table's files, and makes it the table's",
            table=config.name,
        )


def check_own_options(config: TableConfig, options: WriteOptions) -> None:
    """Raise `OptionError` for a write with other options of the HBASE index than the table's, which whatever keeps it up goes by."""
    others = options.hbase.differing(stored_hbase_options(config)) if has_hbase_index(config) else []
    if others:
        raise OptionError(
            f"{others[0]} of this write differs from the table's, by which all its writes and services keep its HBASE index up; set it in"
            " the table's properties",
            table=config.name,
        )
