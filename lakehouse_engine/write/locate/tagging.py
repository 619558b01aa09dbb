"""Finds a batch's keys in slices: by the index in base files, and in logs that may matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.index.base import TaggedFile
from lakehouse_engine.index.record_level import not_in_slice
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.locate.logged import SliceLogs
from lakehouse_engine.write.locate.settle import SettleTask, SliceHits, settle
from lakehouse_engine.write.locate.target import Located, Write
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS


def find_hits(write: Write, batch: Batch, runner: TaskRunner, *, ordered: bool) -> list[SliceHits]:
    """Every slice with keys of the batch. With `ordered`, rows are compared by the batch's ordering fields."""
    target = write.target
    assert target.logs is not None
    found = write.find(batch, runner)
    by_path = {one.base.path: one for one in found.tagged}
    ordering = _ordering(target.logs, batch) if ordered else ()
    finder = _Finder(write.context, target.logs, batch, by_path, ordering, target.located, found.exact)
    known: list[SliceHits] = []
    tasks: list[SettleTask] = []
    for piece, rows in found.places:
        one = finder.look(piece, rows)
        if isinstance(one, SliceHits):
            known.append(one)
        elif one is not None:
            tasks.append(one)
    return [*known, *(hits for hits in runner.run(settle, tasks, name="tag") if len(hits.rows))]


def _ordering(logs: SliceLogs, batch: Batch) -> tuple[pa.Array, ...]:
    ordering = logs.reader.rules.ordering
    if not set(ordering.roots) <= set(batch.source.column_names):
        return ()
    return tuple(ordering.values(batch.source.columns(ordering.roots, batch.rows)))


@dataclass(slots=True)
class _Finder:
    """Decides what to read of a slice. `tagged` has the hits in base files by path. `exact` as in `index.base.Found`.

    `_chosen` are the last requested rows with their keys and ordering values: consecutive slices of a partition share them, also when sent
    to other processes.
    """

    context: WriteContext
    logs: SliceLogs
    batch: Batch
    tagged: dict[str, TaggedFile]
    ordering: tuple[pa.Array, ...]
    located: Located | None = None
    exact: bool = False
    _chosen: tuple[Rows | None, pa.Array, tuple[pa.Array, ...]] | None = None

    def look(self, piece: FileSlice, rows: Rows | None) -> SliceHits | SettleTask | None:
        """What is known without reading, else the task that finds out; None for a slice without any of the keys."""
        tagged = self.tagged.get(piece.base_file.path) if piece.base_file is not None else None
        added = self.logs.may_insert(piece)
        if self.exact and not added and rows is not None:
            self._check(piece, rows, tagged)
        if tagged is None:
            return self._task(piece, None, rows) if added else None
        if added or self._compares(piece) or self.logs.may_delete(piece):
            return self._task(piece, tagged, rows if added else np.unique(tagged.rows))
        return SliceHits.of_tagged(piece, tagged)

    def _check(self, piece: FileSlice, rows: Rows, tagged: TaggedFile | None) -> None:
        missing = np.setdiff1d(rows, NO_ROWS if tagged is None else tagged.rows)
        if len(missing):
            raise not_in_slice(self.context.config.name, self.batch.keys[int(missing[0])].as_py(), piece)

    def _compares(self, piece: FileSlice) -> bool:
        rules = self.logs.reader.rules
        return bool(self.ordering) and (rules.merger.compares_ordering or bool(piece.log_files))

    def _task(self, piece: FileSlice, tagged: TaggedFile | None, rows: Rows | None) -> SettleTask:
        positions, hits = (tagged.positions, tagged.rows) if tagged is not None else (NO_ROWS, NO_ROWS)
        keys, ordering = self._values(rows)
        found = hits if rows is None else np.searchsorted(rows, hits).astype(np.int64)
        logged = self.logs.logged(piece)
        merger, fold = self.context.merger, bool(piece.log_files)
        side = None if self.located is None else self.located.side(piece)
        indexed_in = self.context.config.name if self.exact else None
        weighs = bool(self.ordering) and self.logs.reader.rules.merger.compares_ordering
        planned = self.logs.planned(piece) if weighs and self.logs.may_delete(piece) else None
        return SettleTask(self.logs.reader, logged, keys, rows, ordering, positions, found, merger, fold, side, indexed_in, planned)

    def _values(self, rows: Rows | None) -> tuple[pa.Array, tuple[pa.Array, ...]]:
        if rows is None:
            return self.batch.keys, self.ordering
        if self._chosen is None or self._chosen[0] is not rows:
            chosen = pa.array(rows)
            self._chosen = rows, self.batch.keys.take(chosen), tuple(column.take(chosen) for column in self.ordering)
        return self._chosen[1:]
