"""Sorts the rows of a group: deals them out to parts of the order, and sorts each part in memory.

Parts that fit the processor's cache are sorted and taken faster than all rows at once, and parts in files need no memory until their turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.dealt_rows import DealtRows
from lakehouse_engine.files.row_pool import Rows, SpillTo, take_rows
from lakehouse_engine.services.cluster.group_rows import GroupRows
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.parts import SortParts
from lakehouse_engine.sorting.ranges import SAMPLE_ROWS

_SHARE = 4
"""Part of the memory for rows that is filled before they go to a file, and by the parts that are sorted at once."""
_PART_BYTES = 8 * 1024 * 1024
_MOST_PARTS = 4096
_SLACK, _MOST_SLACK = 0.1, 0.4
"""Share of a file, and of a part, by which it may end earlier or later, where a cell of a curve ends."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows in order, shared out to files by parts. A part of up to `most` bytes is sorted in memory."""

    dealt: DealtRows
    parts: SortParts
    files: tuple[Rows, ...]
    most: int

    @classmethod
    def of(cls, group: GroupRows, order: SortOrder, files: int, spill: SpillTo, threads: int) -> SortedRows:
        """The rows of the group. Rows above the limit of `spill` wait in files, and then sort columns are read twice: a sample of all
        rows says where parts end. `threads` parts are sorted at once.
        """
        tables, share = group.tables(), max(1, spill.limit // _SHARE)
        held, size, is_all = _up_to(spill.limit, tables)
        known = max(1, sum(table.num_rows for table in held))
        expected = size if is_all else size * max(group.num_base_rows(), known) // known
        per_file = -(-expected // min(_PART_BYTES, max(1, share // threads)) // files)
        count = files * max(1, min(per_file, _MOST_PARTS // files))
        # Files without rows may have no row group, and make no table.
        none = group.form.empty_table()
        sample = _sampled(chain([none], held) if is_all else group.tables(order.columns), order, max(known, group.num_base_rows()))
        slack = min(_MOST_SLACK, _SLACK * count / files)
        parts = SortParts.of(sample, order.columns, SortLayout(order.layout), count, slack=slack)
        dealt = DealtRows(group.form, parts.count, spill if is_all else replace(spill, limit=share))
        for table in chain(_drained(held), tables):
            dealt.add(table, parts.numbers(table))
        return cls(dealt, parts, tuple(np.array_split(np.arange(parts.count), files)), max(2 * share // threads, _PART_BYTES))

    def tables(self, file: int, step: int) -> Iterator[pa.Table]:
        """The rows of a file, up to `step` at a time. Callable from several threads."""
        for number in self.files[file]:
            rows = self.dealt.part(int(number))
            # A part that is larger has many equal rows, and stays in its files.
            rows = rows.unify_dictionaries().combine_chunks() if rows.nbytes <= self.most else rows
            numbers = self.parts.order(rows)
            for start in range(0, len(numbers), step):
                yield take_rows(rows, numbers[start : start + step])


def _up_to(limit: int, tables: Iterator[pa.Table]) -> tuple[list[pa.Table], int, bool]:
    """Tables until they have more than `limit` bytes, their bytes, and True if they are all."""
    held, size = list[pa.Table](), 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size > limit:
            return held, size, False
    return held, size, True


def _drained(held: list[pa.Table]) -> Iterator[pa.Table]:
    """The tables in order, each of them given free."""
    held.reverse()
    while held:
        yield held.pop()


def _sampled(tables: Iterator[pa.Table], order: SortOrder, rows: int) -> pa.Table:
    """About `SAMPLE_ROWS` of the rows, in the sort columns, the same each time."""
    chance, share, found = np.random.default_rng(0), min(1.0, SAMPLE_ROWS / rows), []
    for table in tables:
        chosen = np.flatnonzero(chance.random(table.num_rows) < share)
        found.append(table.select(list(order.columns)).take(pa.array(chosen)))
    return pa.concat_tables(found).unify_dictionaries().combine_chunks()
