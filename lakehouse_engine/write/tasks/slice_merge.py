"""One slice with log files for which a commit needs a base file: reads it merged, applies changes, writes a base file.

It does for slices of merge-on-read tables what a copy-on-write merge does to a base file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.model.keys import COMMIT_SEQNO, META_COLUMNS, RECORD_KEY
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.record.matching import matches
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.append import NO_KEYS
from lakehouse_engine.write.tasks.base_files import (
    NO_ROWS,
    FileContext,
    Mask,
    Portion,
    WriteStatus,
    given_portions,
    inherited_keys,
    next_version,
    write_base_file,
)


@dataclass(frozen=True, slots=True)
class SliceMergeTask:
    """Write the next base file of a slice.

    `rows` of `source` replace every stored row of their key (they are known to win), or are added if their key is not stored; `inserts` are
    added whatever is stored. `deletes` (record keys) and `seqnos` (texts of `_hoodie_commit_seqno`) say which stored rows to drop.
    """

    context: FileContext
    task: int
    piece: LoggedSlice
    reader: SliceReader
    source: RowSource
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: pa.Array = field(default_factory=lambda: NO_KEYS)
    seqnos: pa.Array = field(default_factory=lambda: NO_KEYS)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)

    def packed(self) -> SliceMergeTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, self.rows, self.inserts))


def merge_slice(task: SliceMergeTask) -> WriteStatus:
    """Write the merged slice with the changes applied, row group by row group. No stat if no row was changed, deleted or added.

    Raises as `SliceReader.iter`.
    """
    context, stored = task.context, task.piece.slice
    file = next_version(context, stored.partition_path, stored.file_id, task.task)
    inherited = inherited_keys(context, context.storage, stored.base_file)
    merges = stored.base_file is not None
    written = write_base_file(context, file, task.task, _merged(task), merges=merges, inherited=inherited)
    return written.changed(stored.base_instant)


def _merged(task: SliceMergeTask) -> Iterator[Portion]:
    """Portions in which rows stay about where they were: a changed row follows the row group of its old version."""
    schema = task.context.schema
    reader = replace(task.reader, schema=schema)
    incoming = _flat(task.source.columns([RECORD_KEY], task.rows).column(0))
    waiting = np.ones(len(task.rows), dtype=bool)
    for stored, in_base in _marked_last(reader.iter(task.piece, [*META_COLUMNS, *schema.names])):
        keys = reader.rules.record_keys(stored)
        at, found = matches(keys, incoming)
        replaced = np.zeros(stored.num_rows, dtype=bool)
        replaced[at] = True
        dropped = _dropped(task, stored, keys) & ~replaced
        waiting[found] = False
        # A key that is stored twice is replaced twice, as in a base file without logs.
        hits = np.sort(found)
        kept = ~replaced & ~dropped
        rows = stored if kept.all() else stored.filter(pa.array(kept))
        yield Portion(rows, new_keys=not in_base, updates=len(hits), deletes=int(dropped.sum()))
        yield from given_portions(task.context, task.source, task.rows[hits], new_keys=not in_base, inserts=False)
    yield from given_portions(task.context, task.source, np.concatenate([task.rows[waiting], task.inserts]))


def _dropped(task: SliceMergeTask, stored: pa.Table, keys: pa.Array) -> Mask:
    dropped = np.zeros(stored.num_rows, dtype=bool)
    if len(task.deletes):
        dropped |= np.asarray(pc.is_in(keys, value_set=task.deletes))
    if len(task.seqnos):
        dropped |= np.asarray(pc.is_in(stored.column(COMMIT_SEQNO), value_set=task.seqnos))
    return dropped


def _marked_last(tables: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """Each table, and whether its keys are in the base file: True for all but the last, whose rows are only in logs."""
    held: pa.Table | None = None
    for table in tables:
        if held is not None:
            yield held, True
        held = table
    if held is not None:
        yield held, False


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return pa.concat_arrays(flat.chunks) if isinstance(flat, pa.ChunkedArray) else flat
