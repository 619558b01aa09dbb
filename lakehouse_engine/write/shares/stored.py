"""Deals what slices store into shares: the keys of base files with their positions, and what logs say of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import iter_base_file, projected_schema
from lakehouse_engine.files.log_records import fold_logs
from lakehouse_engine.files.log_scanner import scan_logs
from lakehouse_engine.files.slice_reader import SliceReader, plain
from lakehouse_engine.index.base import StoredKeys
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_SEQNO
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.shares.dealing import Dealing
from lakehouse_engine.write.shares.exchange import Exchange, SplitFile

KEY, AT, STATE, DELETED_AT = "_hoodie_key", "_hoodie_at", "_hoodie_state", "_hoodie_deleted_at"
"""Columns with the record key, the position in the base file, the key's final state in the logs (at least 0 for a row), and the ordering
value of its deletion; no column of a table has these names.
"""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """Deal the keys of some slices. With a `reader`, given for tables with logs, the deciding ordering values come with them."""

    exchange: Exchange
    storage: Storage
    pieces: tuple[LoggedSlice, ...]
    stored: StoredKeys
    reader: SliceReader | None
    dealing: Dealing


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """The dealt keys of a slice: those of its base file, which has `base_rows`, and those of its logs."""

    base: SplitFile | None
    base_rows: int
    logs: SplitFile | None


def deal_stored(task: StoredTask) -> list[StoredSlice]:
    """Deal the keys of each slice, one slice in memory at a time. Raises as `iter_base_file`, `scan_logs` and `fold_logs`."""
    rows: list[int] = []

    def bases() -> Iterator[pa.Table]:
        for piece in task.pieces:
            if piece.slice.base_file is not None:
                table = pa.concat_tables(_base_rows(task, piece.slice.base_file))
                rows.append(table.num_rows)
                yield table

    stored = zip(_dealt(task, "stored", bases()), rows, strict=True)
    logged = iter(_dealt(task, "logged", _all_logged(task)))
    found = []
    for piece in task.pieces:
        base, count = (None, 0) if piece.slice.base_file is None else next(stored)
        found.append(StoredSlice(base, count, next(logged) if _has_logs(task, piece) else None))
    return found


def _has_logs(task: StoredTask, piece: LoggedSlice) -> bool:
    return task.reader is not None and bool(piece.slice.log_files)


def _all_logged(task: StoredTask) -> Iterator[pa.Table]:
    for piece in task.pieces:
        if task.reader is not None and _has_logs(task, piece):
            yield _logged(piece, task.reader)


@dataclass(frozen=True, slots=True)
class NumbersTask:
    """Deal the numbers (`_hoodie_commit_seqno`) of the rows of some slices, with their positions. `reader` as in `StoredTask`."""

    exchange: Exchange
    storage: Storage
    pieces: tuple[LoggedSlice, ...]
    reader: SliceReader | None
    dealing: Dealing


def deal_numbers(task: NumbersTask) -> list[SplitFile]:
    """Deal the numbers of each slice. Raises as `iter_base_file` and `SliceReader.iter`."""
    return _dealt(task, "numbers", (_with_numbers(task, piece) for piece in task.pieces))


def _with_numbers(task: NumbersTask, piece: LoggedSlice) -> pa.Table:
    tables, start = [_with_keys(pa.array([], pa.string()), 0, pa.table({}))], 0
    for table in _numbered(task, piece):
        tables.append(_with_keys(table.column(COMMIT_SEQNO).cast(pa.string()), start, pa.table({})))
        start += table.num_rows
    return pa.concat_tables(tables)


def _numbered(task: NumbersTask, piece: LoggedSlice) -> Iterator[pa.Table]:
    base = piece.slice.base_file
    if task.reader is not None:
        yield from task.reader.iter(piece, [COMMIT_SEQNO])
    elif base is not None:
        yield from iter_base_file(task.storage, base, pa.schema([]), meta_columns=[COMMIT_SEQNO])


def _dealt(task: StoredTask | NumbersTask, what: str, tables: Iterable[pa.Table]) -> list[SplitFile]:
    """Each table, split by the shares of its keys."""
    keyed = ((table, pa.concat_arrays([pa.array([], pa.string()), *table.column(KEY).chunks])) for table in tables)
    return task.exchange.split_each(what, ((table, task.dealing.shares(keys)) for table, keys in keyed), task.dealing.count)


def _base_rows(task: StoredTask, base: BaseFile) -> Iterator[pa.Table]:
    """Key, position and ordering columns of every row, a table for each row group."""
    reader, stored, start = task.reader, task.stored, 0
    compared = [] if reader is None or not reader.rules.merger.compares_ordering else reader.rules.ordering.roots
    fields = {field.name: field for field in stored.schema}
    fields |= {name: reader.schema.field(name) for name in compared if reader is not None}
    schema = pa.schema(list(fields.values()))
    empty = projected_schema(schema, compared).empty_table()
    yield _with_keys(pa.array([], pa.string()), 0, empty)
    for table in iter_base_file(task.storage, base, schema, meta_columns=stored.meta_columns):
        yield _with_keys(stored.keys(table), start, table.select(compared).cast(empty.schema))
        start += table.num_rows


def _with_keys(keys: pa.Array | pa.ChunkedArray, start: int, rows: pa.Table) -> pa.Table:
    at = pa.array(np.arange(start, start + len(keys), dtype=np.int64))
    return pa.table([keys, at, *rows.columns], names=[KEY, AT, *rows.column_names])


def _logged(piece: LoggedSlice, reader: SliceReader) -> pa.Table:
    """Final state of every key in the logs of a slice."""
    wanted = plain(projected_schema(reader.schema, reader.rules.columns(reader.schema, base=False)))
    scanned = scan_logs(reader.storage, piece, reader.scope)
    outcome = fold_logs(scanned.blocks, wanted, reader.rules)
    data = outcome.data.take(pa.array(np.maximum(outcome.rows, 0), mask=outcome.rows < 0))
    deleted_at = pa.nulls(len(outcome.rows)) if outcome.deleted_at is None else outcome.deleted_at
    columns = [outcome.known_keys.cast(pa.string()), pa.array(outcome.rows), deleted_at, *data.columns]
    return pa.table(columns, names=[KEY, STATE, DELETED_AT, *data.column_names])
