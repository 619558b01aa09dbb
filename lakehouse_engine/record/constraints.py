"""Checks a batch against the constraints of its table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import ConstraintError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.keys import DELETED_AT, IS_DELETED


def fitted(rows: pa.Table, constraints: Constraints) -> pa.Table:
    """Cut texts that exceed VARCHAR(n) only by trailing blanks to n characters, as Spark does."""
    for name, length in constraints.max_length:
        for number in _numbers(rows, name):
            column = rows.column(number)
            too_long = _longer(column, length)
            if pc.any(too_long).as_py():
                by_blanks = pc.and_(too_long, pc.invert(_longer(pc.utf8_rtrim(column, characters=" "), length)))
                cut = pc.if_else(by_blanks, pc.utf8_slice_codeunits(column, 0, length), column)
                rows = rows.set_column(number, rows.schema.field(number), cut)
    return rows


def check_constraints(rows: pa.Table, keys: pa.Array | pa.ChunkedArray, constraints: Constraints, *, soft: bool = False) -> None:
    """Refuse rows that violate a constraint, except deletions. `keys` has each row's record key. `soft`: rows with a deletion time count as
    deletions.

    Raises `ConstraintError` with the column and one of the keys.
    """
    if not constraints:
        return
    lives = pc.invert(pc.fill_null(rows.column(IS_DELETED), False)) if IS_DELETED in rows.column_names else None
    if soft:
        stay = rows.column(DELETED_AT).is_null()
        lives = stay if lives is None else pc.and_(lives, stay)
    for name in constraints.not_null:
        for number in _numbers(rows, name):
            if rows.column(number).null_count:
                _check(pc.is_null(rows.column(number)), lives, keys, name, "is null, and the column is NOT NULL")
    for name, length in constraints.max_length:
        for number in _numbers(rows, name):
            _check(_longer(rows.column(number), length), lives, keys, name, f"has more characters than VARCHAR({length}) takes")


def _numbers(rows: pa.Table, name: str) -> list[int]:
    """Position of the column; None in a table whose columns were replaced."""
    return [number for number, one in enumerate(rows.column_names) if one.lower() == name.lower()]


def _longer(column: pa.ChunkedArray, length: int) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(pc.utf8_length(column), length), False)


def _check(broken: pa.ChunkedArray, lives: pa.ChunkedArray | None, keys: pa.Array | pa.ChunkedArray, column: str, what: str) -> None:
    found = broken if lives is None else pc.and_(broken, lives)
    count = pc.sum(found).as_py() or 0
    if count:
        example = keys[pc.index(found, True).as_py()].as_py()
        raise ConstraintError(
            f"the column {column!r} {what}: so it is in {count:,} row(s) of the batch, for example of the record key {example!r}; correct"
            " them, or change the column with ALTER TABLE. Nothing was written",
            column=column,
        )
