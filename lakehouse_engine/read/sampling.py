"""Samples a few stored rows of a table, for questions that any rows answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.files.base_file import first_rows
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.order import age
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.view.table_state import TableState

_ROWS = 16
_KEPT = 256
"""Number of samples that a process remembers, for all tables together."""


@dataclass(frozen=True, slots=True)
class StoredSample:
    """Rows of one file slice, with the requested columns and their record keys (nulls if the table has no meta columns)."""

    partition_path: str
    base: BaseFile | None
    rows: pa.Table


def sample_rows(state: TableState, schema: pa.Schema, columns: Sequence[str], *, partitions: int) -> list[StoredSample]:
    """Rows of the oldest and the newest base file of up to `partitions` partitions; of log-only slices only if there is no base file.

    Empty if no row is stored.
    """
    fields = pa.schema([schema.field(name) for name in columns])
    names = [RECORD_KEY]
    chosen = _spread(state.live_partitions(), partitions)
    bases = [
        (partition, base)
        for partition in chosen
        for base in _ends([piece.base_file for piece in state.view.latest_slices(partition) if piece.base_file is not None])
    ]
    found = [StoredSample(path, base, _first_rows(state.storage, base, fields, names)) for path, base in bases]
    in_logs = [*(names if state.config.populates_meta_fields else []), *columns]
    return [one for one in found if one.rows.num_rows] or list(_logged(state, schema, in_logs, chosen))


def _first_rows(storage: Storage, base: BaseFile, fields: pa.Schema, meta: Sequence[str]) -> pa.Table:
    """Rows of a base file, cached per process, because a file never changes under its name."""
    identity = identity_of(storage)
    if identity is None:
        return first_rows(storage, base, fields, _ROWS, meta_columns=meta)
    key = (identity, base.path, base.size, tuple(fields), tuple(meta))
    return _SAMPLES.find(key, lambda: first_rows(storage, base, fields, _ROWS, meta_columns=meta))


_SAMPLES: BoundedCache[pa.Table] = BoundedCache(_KEPT)


def _spread(partitions: Sequence[str], count: int) -> list[str]:
    """`count` items of a sorted list, including the first and the last."""
    if len(partitions) <= count:
        return list(partitions)
    return [partitions[number * (len(partitions) - 1) // (count - 1)] for number in range(count)]


def _ends(bases: Sequence[BaseFile]) -> list[BaseFile]:
    ordered = sorted(bases, key=lambda base: (age(base.instant_time), base.file_id))
    return ordered if len(ordered) < 2 else [ordered[0], ordered[-1]]


def _logged(state: TableState, schema: pa.Schema, columns: Sequence[str], partitions: Sequence[str]) -> Iterator[StoredSample]:
    """Rows of the first log-only slice that has any."""
    slices = [piece for partition in partitions for piece in state.view.latest_slices(partition) if piece.base_file is None]
    if not slices:
        return
    reader = SliceReader(state.storage, schema, MergeRules.of(state.config, schema), LogScope.of(state.timeline))
    for piece in slices:
        rows = _first(reader, piece, columns)
        if rows.num_rows:
            yield StoredSample(piece.partition_path, None, rows)
            return


def _first(reader: SliceReader, piece: FileSlice, columns: Sequence[str]) -> pa.Table:
    tables = (table for table in reader.iter(LoggedSlice(piece), list(columns)) if table.num_rows)
    found = next(tables, None)
    return pa.table({}) if found is None else found.slice(0, _ROWS)
