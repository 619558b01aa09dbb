"""Rows dealt out to numbered parts; above a limit they wait in mapped Arrow files, each of which has its rows part by part."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.row_pool import Rows, SpillTo


@dataclass(slots=True)
class DealtRows:
    """Rows of one schema in `parts` parts. Those held above the limit of `spill`, and their copy while it is written, are in memory."""

    schema: pa.Schema
    parts: int
    spill: SpillTo
    _stored: list[_Dealt] = field(default_factory=list)
    _held: list[_Dealt] = field(default_factory=list)
    _bytes: int = 0

    def add(self, rows: pa.Table, numbers: Rows) -> None:
        """Add rows, each to the part of its number."""
        dealt = _Dealt.of(rows, numbers, self.parts)
        self._held.append(dealt)
        self._bytes += dealt.rows.nbytes
        if self._bytes > self.spill.limit:
            self._store()

    def rows_of(self, part: int) -> int:
        return sum(dealt.rows_of(part) for dealt in (*self._stored, *self._held))

    def part(self, number: int) -> pa.Table:
        """Rows of a part, in the order in which they were added; those in files are mapped, not loaded."""
        return _joined(self.schema, (*self._stored, *self._held), number)

    def _store(self) -> None:
        parts = [_joined(self.schema, self._held, number) for number in range(self.parts)]
        ends = np.cumsum([part.num_rows for part in parts])
        self._held, self._bytes = [], 0
        # A file of Arrow has one dictionary for a column. In one batch, since a mapped file takes memory for each array of each batch.
        rows = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
        self._stored.append(_Dealt(self.spill.write(len(self._stored), rows), ends))


@dataclass(frozen=True, slots=True)
class _Dealt:
    """Rows in the order of their parts; `ends[i]` is the row number at which part i ends."""

    rows: pa.Table
    ends: Rows

    @classmethod
    def of(cls, rows: pa.Table, numbers: Rows, parts: int) -> _Dealt:
        ends = np.cumsum(np.bincount(numbers, minlength=parts))
        # Numbers of 16 bits are sorted by radix.
        small = numbers.astype(np.uint16) if parts < 1 << 16 else numbers
        return cls(rows.combine_chunks().take(pa.array(np.argsort(small, kind="stable"))), ends)

    def rows_of(self, part: int) -> int:
        return int(self.ends[part] - self._start(part))

    def slice(self, part: int) -> pa.Table:
        return self.rows.slice(self._start(part), self.rows_of(part))

    def _start(self, part: int) -> int:
        return int(self.ends[part - 1]) if part else 0


def _joined(schema: pa.Schema, dealt: tuple[_Dealt, ...] | list[_Dealt], part: int) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(one.slice(part) for one in dealt if one.rows_of(part))])
