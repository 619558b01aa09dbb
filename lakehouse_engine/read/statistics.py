"""Guarantees about the rows of row groups, from a base file's footer.

Uses only bounds that hold however a reader interprets the column: of numbers, dates, timestamps, decimals and text, converted to the
table's type if that keeps their order. Statistics that are missing or not understood guarantee nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from lakehouse_engine.files.column_bounds import bounds_of, misleads
from lakehouse_engine.files.projection import match_name
from lakehouse_engine.read.row_filter import RowFilter

EVERY = pc.scalar(True)
"""A guarantee without information."""
_MOST_FLOATING = 3
"""Number of floating point columns whose statistics are used: each doubles the number of checks, because bounds leave out NaN."""


def matching_row_groups(metadata: pq.FileMetaData, wanted: RowFilter, path: str = "") -> list[int]:
    """Numbers of the row groups that may have rows for which the filter is true.

    Raises `SchemaIncompatibleError` if columns of the file differ only in case.
    """
    asked = guarantees_of(metadata, wanted, path)
    found = wanted.may_hold([one for _, one in asked])
    return sorted({number for (number, _), may in zip(asked, found, strict=True) if may})


def guarantees_of(metadata: pq.FileMetaData, wanted: RowFilter, path: str = "") -> list[tuple[int, pc.Expression]]:
    """Row group numbers, each with a guarantee about the filter's columns; each row satisfies one of its row group's guarantees.

    Raises as `matching_row_groups`.
    """
    stored = metadata.schema.to_arrow_schema()
    every = wanted.schema.names
    fields = [(wanted.schema.field(name), match_name(stored.names, name, path, every)) for name in wanted.columns]
    positions = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    known = [_column(metadata, field, None if at is None else stored.field(at), positions, wanted) for field, at in fields]
    asked: list[tuple[int, pc.Expression]] = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        asked += [(number, one) for one in together(column.guarantees(group) for column in known)]
    return asked


def _column(metadata: pq.FileMetaData, field: pa.Field, stored: pa.Field | None, positions: dict[str, int], wanted: RowFilter) -> _Column:
    position = None if stored is None else positions.get(stored.name)
    if stored is None or position is None:
        return _Column(field, stored, None, unbounded=wanted.rounds)
    physical = metadata.schema.column(position).physical_type
    return _Column(field, stored, position, unbounded=wanted.rounds or misleads(metadata, stored.type, physical))


class _Column:
    """A table column and the file's column that stores it (None: the file lacks it, so it is null). With `unbounded`, its bounds are
    ignored.
    """

    def __init__(self, field: pa.Field, stored: pa.Field | None, position: int | None, *, unbounded: bool) -> None:
        self.field, self.stored, self.position, self.unbounded = field, stored, position, unbounded

    def guarantees(self, group: pq.RowGroupMetaData) -> list[pc.Expression]:
        """Alternatives: each row of the group satisfies one of them."""
        name, kind = pc.field(self.field.name), self.field.type
        if pat.is_nested(kind):
            return [EVERY]
        if self.stored is None:
            return [name.is_null()]
        statistics = None if self.position is None or pat.is_nested(self.stored.type) else group.column(self.position).statistics
        if statistics is None:
            return [EVERY]
        nulls = statistics.null_count if statistics.has_null_count else None
        if nulls == group.num_rows:
            return [name.is_null()]
        bounds = None if self.unbounded else bounds_of(statistics, self.stored.type, kind)
        if bounds is None:
            return [EVERY]
        return within(self.field, bounds[0], bounds[1], has_nulls=nulls != 0)


def within(field: pa.Field, least: pa.Scalar, greatest: pa.Scalar, *, has_nulls: bool) -> list[pc.Expression]:
    """What bounds guarantee about a column's values, as alternatives: each row satisfies one of them. Bounds leave out NaN."""
    name = pc.field(field.name)
    low, high = name >= least, name <= greatest
    inside = (low | name.is_null()) & (high | name.is_null()) if has_nulls else low & high
    return [inside, name == pa.scalar(float("nan"), field.type)] if pat.is_floating(field.type) else [inside]


def together(columns: Iterable[list[pc.Expression]]) -> list[pc.Expression]:
    """Alternatives for whole rows, combined from those of several columns."""
    alternatives, floating = [], 0
    for found in columns:
        floating += len(found) > 1
        alternatives.append([EVERY] if len(found) > 1 and floating > _MOST_FLOATING else found)
    return [_all(one) for one in product(*alternatives)]


def _all(expressions: Sequence[pc.Expression]) -> pc.Expression:
    whole = EVERY
    for one in expressions:
        whole = one if whole is EVERY else whole if one is EVERY else whole & one
    return whole
