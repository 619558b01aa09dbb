"""Rows made of an incoming and a stored one while they are written: updates of some columns, and partial updates.

Where a log takes whole rows, and in base files, what is stored now is read merged, combined here, and written as it comes out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.record.matching import matches
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.base_files import NO_ROWS, Mask


@dataclass(frozen=True, slots=True)
class CombineTask:
    """Rows of `source` (ascending numbers) whose keys the slice has, one stored row each; `wins` says which are newer."""

    reader: SliceReader
    piece: LoggedSlice
    merger: RecordMerger
    source: RowSource
    rows: Rows
    wins: Mask

    def packed(self) -> CombineTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, self.rows))


@dataclass(frozen=True, slots=True)
class Combined:
    """Resulting rows, keyed, under the partition path that they came with; `rows` (ascending) are their source numbers."""

    rows: Rows
    table: pa.Table


def combine_slice(task: CombineTask) -> Combined:
    """Raises as `SliceReader.iter`."""
    incoming = task.source.take(task.rows)
    user = [name for name in incoming.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    at, stored = _stored(task, incoming.column(RECORD_KEY), user)
    offered = incoming.take(pa.array(at))
    wins = task.wins[at]
    merged = task.merger.combine(stored, offered.select(user), None if wins.all() else wins)
    keys = [offered.column(name) for name in (RECORD_KEY, PARTITION_PATH)]
    return Combined(task.rows[at], pa.table([*keys, *merged.columns], schema=offered.schema))


def _stored(task: CombineTask, keys: pa.ChunkedArray, user: list[str]) -> tuple[Rows, pa.Table]:
    """Which keys are stored, ascending, and their rows; for several rows of one key the last."""
    rules, wanted = task.reader.rules, keys.combine_chunks()
    names = [RECORD_KEY, *user] if rules.key_generator is None else user
    found, parts = [NO_ROWS], []
    for table in task.reader.iter(task.piece, names):
        places, hits = matches(rules.record_keys(table), wanted)
        parts.append(table.select(user).take(pa.array(places)))
        found.append(hits)
    numbers = np.concatenate(found)
    at, last = np.unique(numbers[::-1], return_index=True)
    return at.astype(np.int64), pa.concat_tables(parts).take(pa.array(len(numbers) - 1 - last))
