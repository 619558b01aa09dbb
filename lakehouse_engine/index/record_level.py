"""RECORD_LEVEL index: the metadata table says in which file group a key is, and only the files of those groups are opened.

The row number comes from the file. A key that is not where the metadata table says is an error, because a write that took it for a new one
could store it twice. Where the metadata table cannot be asked, keys are compared with all files, as by SIMPLE, which has the same result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import LakehouseError, RecordIndexError, UnavailableError
from lakehouse_engine.index.base import Found, KeyedRows, Rows, Slices, StoredKeys, TaggedFile
from lakehouse_engine.index.named_places import by_group, tagged_in
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import is_by_partition
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.record_index import trusted_record_index
from lakehouse_engine.record.matching import matches
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class StoredIndex:
    """Record index of a table's state. Opened once, when it is first asked or by `fix`; `table` is None if it cannot be asked."""

    state: TableState
    is_global: bool
    _opened: MetadataTable | None = None
    _is_settled: bool = False

    @property
    def table(self) -> MetadataTable | None:
        """Logs a warning with the reason if it is None and the table has rows."""
        if not self._is_settled:
            self._opened, self._is_settled = self._open(), True
        return self._opened

    def _open(self) -> MetadataTable | None:
        if not len(self.state.timeline.completed().writes()):
            return None
        try:
            table = trusted_record_index(self.state)
            if not (self.is_global or is_by_partition(table)) and self.state.config.partition_fields:
                raise UnavailableError("its record index has one place for a key, which by RECORD_LEVEL_INDEX may be in each partition")
            return table
        except LakehouseError as error:
            self.warn(error)
            return None

    def warn(self, error: LakehouseError) -> None:
        logger.warning(
            "the record index of %s (%s) is not asked where keys are, but all files are: %s",
            self.state.config.name,
            self.state.storage.root,
            error.message,
        )


@dataclass(frozen=True, slots=True)
class RecordLevelIndex:
    """GLOBAL_RECORD_LEVEL_INDEX (a key is unique in the table) or RECORD_LEVEL_INDEX (in its partition).

    Without `told`, and in other processes, it compares keys with all files.
    """

    is_global: bool
    told: StoredIndex | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Callable[..., RecordLevelIndex], tuple[Any, ...]]:
        return RecordLevelIndex, (self.is_global,)

    def of(self, state: TableState) -> RecordLevelIndex:
        """The index of a table's state."""
        return RecordLevelIndex(self.is_global, StoredIndex(state, self.is_global))

    def fix(self) -> None:
        """Open the metadata table as it is now. Delta commits that are completed later do not count."""
        _ = None if self.told is None else self.told.table

    @property
    def checks_partitions(self) -> bool:
        """True if `find` checks that the partitions with keys of the batch are complete, so that no other needs a look. Opens the metadata
        table.
        """
        return self.told is not None and self.told.table is not None

    def find(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> Found:
        """Like `Index.find`; the caller has checked the partitions of the batch. Raises `RecordIndexError` for a key that is not where the
        metadata table says, and as `check_complete`.
        """
        places = None if self.told is None else self._places(self.told, view, batch)
        if self.told is None or places is None:
            if self.told is not None and self.is_global:
                check_complete(self.told.state)
            return KeyColumnIndex(self.is_global, use_bloom=False).find(storage, view, batch, stored, runner)
        tagged = tagged_in(storage, places, batch.keys, stored, runner)
        _check(self.told.state.config.name, batch.keys, places, tagged)
        return Found(tagged, places, exact=True)

    def _places(self, told: StoredIndex, view: Slices, batch: KeyedRows) -> list[tuple[FileSlice, Rows]] | None:
        """The slices that the index names, with the rows that it says to be there; None if it cannot be read."""
        table = told.table
        if table is None:
            return None
        try:
            named = list(self._named(table, batch))
        except LakehouseError as error:
            told.warn(error)
            return None
        groups = list(by_group(named))
        others = {group.partition_path for group, _ in groups} - batch.rows_by_partition.keys()
        if others:
            check_complete(told.state, frozenset(others))
        return _in_slices(told.state.config.name, view, batch.keys, groups)

    def _named(self, table: MetadataTable, batch: KeyedRows) -> Iterator[tuple[pa.Table, Rows]]:
        """Locations in the columns of `LOCATED`, and the batch's row for each."""
        if self.is_global:
            yield _located(table, batch.keys, None, None)
            return
        for partition, rows in batch.rows_by_partition.items():
            yield _located(table, batch.keys.take(pa.array(rows)), rows, partition)


def not_in_slice(table: str, key: str, piece: FileSlice) -> RecordIndexError:
    """The error for a key that a slice does not have, although the record index says so."""
    return _wrong(table, key, piece.group, "which has no row or deletion of that key")


def _wrong(table: str, key: str, group: FileGroupId, but: str) -> RecordIndexError:
    return RecordIndexError(
        f"the record index of the metadata table places the key {key!r} into the file group {group.file_id}, {but}. Nothing was written, as"
        " the key could be stored twice: build the index again (`lakehouse metadata rebuild TABLE`), or let the write compare keys with all"
        " files (hoodie.index.type=GLOBAL_SIMPLE)",
        table=table,
        key=key,
        partition=group.partition_path,
        file_group=group.file_id,
    )


def _located(table: MetadataTable, keys: pa.Array, rows: Rows | None, partition: str | None) -> tuple[pa.Table, Rows]:
    """Locations of some keys, each with the batch's row: the first of equal keys. `rows[i]` is the row of key i (None: i)."""
    found = record_locations(table, pc.unique(keys), partition)
    at, number = matches(found.column("key"), keys)
    return found.take(pa.array(at)), number if rows is None else rows[number]


def _in_slices(table: str, view: Slices, keys: pa.Array, groups: Iterable[tuple[FileGroupId, Rows]]) -> list[tuple[FileSlice, Rows]]:
    """The current slice of each group. Raises `RecordIndexError` for a group that is not there."""
    slices: dict[str, dict[str, FileSlice]] = {}
    places = []
    for group, rows in groups:
        path = group.partition_path
        if path not in slices:
            slices[path] = {piece.file_id: piece for piece in view.latest_slices(path)}
        piece = slices[path].get(group.file_id)
        if piece is None:
            raise _wrong(table, keys[int(rows[0])].as_py(), group, "which the table does not have")
        places.append((piece, rows))
    return places


def _check(table: str, keys: pa.Array, places: Sequence[tuple[FileSlice, Rows]], tagged: Sequence[TaggedFile]) -> None:
    """Raise `RecordIndexError` for a key that is not in its base file, where no log may have it."""
    hits = {found.base.path: found.rows for found in tagged}
    for piece, rows in places:
        if piece.base_file is not None and not piece.log_files:
            missing = np.setdiff1d(rows, hits.get(piece.base_file.path, rows[:0]))
            if len(missing):
                raise not_in_slice(table, keys[int(missing[0])].as_py(), piece)
