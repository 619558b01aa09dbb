"""Columns that rows of logs lack: there, the stored values stay as they are (hudi-format II.3, partial updates)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rows = npt.NDArray[np.int64]

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AbsentColumns:
    """Row i lacks the columns `sets[codes[i]]` and holds nulls in them."""

    sets: tuple[frozenset[str], ...]
    codes: Rows

    @classmethod
    def of(cls, parts: Sequence[tuple[frozenset[str], int]]) -> AbsentColumns | None:
        """Built from consecutive parts of a table: the columns that each part lacks, and its number of rows. None if no part lacks any."""
        sets = tuple(dict.fromkeys(absent for absent, _ in parts))
        if not any(sets):
            return None
        numbers = {absent: number for number, absent in enumerate(sets)}
        return cls(sets, np.repeat([numbers[absent] for absent, _ in parts], [rows for _, rows in parts]).astype(np.int64))

    def take(self, rows: Rows) -> AbsentColumns:
        return AbsentColumns(self.sets, self.codes[rows])

    def followed_by(self, others: AbsentColumns) -> AbsentColumns:
        """Absent columns of this table followed by another one."""
        return AbsentColumns(self.sets + others.sets, np.concatenate([self.codes, others.codes + len(self.sets)]))

    def in_both(self, others: AbsentColumns) -> AbsentColumns:
        """Columns that combined pairs of rows lack: those that both rows lack."""
        pairs, codes = np.unique(self.codes * len(others.sets) + others.codes, return_inverse=True)
        sets = [self.sets[pair // len(others.sets)] & others.sets[pair % len(others.sets)] for pair in pairs.tolist()]
        distinct = tuple(dict.fromkeys(sets)) or (_NONE,)
        numbers = np.array([distinct.index(absent) for absent in sets], np.int64)
        return AbsentColumns(distinct, numbers[codes.reshape(-1)] if len(sets) else np.empty(0, np.int64))

    def by_columns(self) -> list[tuple[frozenset[str], Rows]]:
        """Row numbers, ascending, for each set of columns that some row lacks."""
        found: dict[frozenset[str], list[Rows]] = {}
        for number, absent in enumerate(self.sets):
            found.setdefault(absent, []).append(np.flatnonzero(self.codes == number))
        rows = {absent: np.sort(np.concatenate(parts)) for absent, parts in found.items()}
        return [(absent, some) for absent, some in rows.items() if len(some)]

    def filled(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        """`rows` with the values of `others`, row for row, in the columns that they lack. Both have the same columns."""
        columns = []
        for name in rows.column_names:
            lacking = np.array([name in absent for absent in self.sets], np.bool_)[self.codes]
            column = rows.column(name)
            columns.append(pc.if_else(pa.array(lacking), others.column(name), column) if lacking.any() else column)
        return pa.Table.from_arrays(columns, schema=rows.schema)
