"""SIMPLE and BLOOM indexes: compare a batch's keys with the stored keys of candidate files.

Files and row groups are excluded by the key range in their Parquet statistics (known ones without a task); the BLOOM kinds also ask the
footer's filter. Only the key column of the rest is read (`lookup`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakehouse_engine.engine import TaskRunner, looking_runner, weighed_out
from lakehouse_engine.index.base import Found, KeyedRows, Rows, Slices, StoredKeys, TaggedFile
from lakehouse_engine.index.key_bounds import may_have_keys
from lakehouse_engine.index.lookup import TagTask, tag_files
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.read.guarantees import FROM_FOOTERS, FileGuarantees, learn_keys
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.record.keys.keygen import KeyGenerator
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class MetaColumnKeys:
    """Record keys from the meta column."""

    @property
    def meta_columns(self) -> Sequence[str]:
        return (RECORD_KEY,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def bounded(self) -> bool:
        return True

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return table.column(RECORD_KEY)


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """`_hoodie_commit_seqno` used as key: finds single rows even if several share a key."""

    @property
    def meta_columns(self) -> Sequence[str]:
        return (COMMIT_SEQNO,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def bounded(self) -> bool:
        return False  # footers are read for the bounds of record keys

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return table.column(COMMIT_SEQNO)


@dataclass(frozen=True, slots=True)
class GeneratedKeys:
    """Record keys computed from user columns, for tables with `hoodie.populate.meta.fields=false`."""

    generator: KeyGenerator
    schema: pa.Schema

    @property
    def meta_columns(self) -> Sequence[str]:
        return ()

    @property
    def bounded(self) -> bool:
        return False  # such files have empty meta columns

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return pa.chunked_array([self.generator.record_keys(table)])


@dataclass(frozen=True, slots=True)
class KeyColumnIndex:
    """SIMPLE (a key is unique in its partition) or GLOBAL_SIMPLE (in the table), with or without Bloom filters.

    `guarantees` rule files out before they are opened. In other processes only footers do.
    """

    is_global: bool
    use_bloom: bool
    guarantees: FileGuarantees = field(default=FROM_FOOTERS, compare=False)

    def __reduce__(self) -> tuple[Callable[..., KeyColumnIndex], tuple[Any, ...]]:
        return KeyColumnIndex, (self.is_global, self.use_bloom)

    def of(self, state: TableState) -> KeyColumnIndex:
        """The index of a table's state, whose metadata table may say between which keys those of a file are."""
        return replace(self, guarantees=guarantees_for(state, Trusted(state), opening=True))

    def find(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> Found:
        """Logs of every slice where the index looks may have keys of the batch."""
        return Found(self.tag(storage, view, batch, stored, runner), self._slices(view, batch))

    def fix(self) -> None:
        """Does nothing: files do not change."""

    def tag(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> list[TaggedFile]:
        """Hits in base files."""
        looking = looking_runner(runner, storage)
        tasks = [
            TagTask(storage, bases, stored, keys, rows, self.use_bloom)
            for chosen, keys, rows in self._places(storage, view, batch, stored)
            for bases in weighed_out(chosen, [base.size for base in chosen], looking)
        ]
        looked = [found for files in looking.run(tag_files, tasks, name="tag") for found in files]
        looked.sort(key=lambda found: found.base.path)  # in whatever order they were looked up
        learn_keys(storage, ((found.base, found.bounds) for found in looked))
        return [found for found in looked if len(found.positions)]

    def _slices(self, view: Slices, batch: KeyedRows) -> Iterator[tuple[FileSlice, Rows | None]]:
        if self.is_global:
            yield from ((piece, None) for piece in view.latest_slices())
            return
        for partition, rows in batch.rows_by_partition.items():
            yield from ((piece, rows) for piece in view.latest_slices(partition))

    def _places(
        self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys
    ) -> Iterator[tuple[list[BaseFile], pa.Array, Rows | None]]:
        """Files, the keys that they may hold, and the numbers of those (None: all of the batch)."""
        if not len(batch.keys):
            return
        if self.is_global:
            bases = _bases(view, None)
            yield (may_have_keys(self.guarantees, storage, bases, batch.keys) if stored.bounded else bases), batch.keys, None
            return
        for partition, rows in batch.rows_by_partition.items():
            bases = _bases(view, partition)
            whole = len(rows) == len(batch.keys)
            keys = batch.keys if whole or not bases else batch.keys.take(pa.array(rows))
            yield (may_have_keys(self.guarantees, storage, bases, keys) if stored.bounded else bases), keys, None if whole else rows


def _bases(view: Slices, partition: str | None) -> list[BaseFile]:
    return [piece.base_file for piece in view.latest_slices(partition) if piece.base_file is not None]
