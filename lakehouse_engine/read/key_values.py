"""Finds the record keys that a filter can be true for: equality with values, and lists of values.

Arrow does not show what is in an expression, except by serializing it: its literals and lists are columns of an IPC file then. Those are
taken as candidates, whatever they are compared with, and Arrow's simplification decides whether a row with another value can match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.read.row_filter import RowFilter

MOST_KEYS = 1000
"""Number of keys up to which a filter counts as a point query."""
_LIST = "value_set"
"""Member with the values of a list, in the options of `is_in`."""


def key_values(wanted: RowFilter, names: Sequence[str]) -> pa.Table | None:
    """The combinations of values that these columns have in every row for which the filter is true; None if they are not few, or unknown.

    For columns of text and whole numbers.
    """
    if wanted.rounds or not set(names) <= set(wanted.columns):
        return None
    literals = _literals(wanted.expression)
    found = [None if literals is None else _values(wanted, wanted.schema.field(name), literals) for name in names]
    columns = [values for values in found if values is not None and len(values)]
    if len(columns) < len(names) or reduce(lambda count, one: count * len(one), columns, 1) > MOST_KEYS:
        return None
    whole = pa.table({"": [0]})
    for name, values in zip(names, columns, strict=True):
        whole = whole.join(pa.table({"": [0] * len(values), name: values}), [""])
    return whole.drop_columns([""])


def _literals(expression: pc.Expression) -> list[pa.Array] | None:
    """Values in an expression, by literal or list; None if this version of Arrow serializes expressions otherwise."""
    try:
        _, (content,) = expression.__reduce__()
        batch = pa.ipc.open_file(content).read_all()
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return [values for column in batch.columns for values in _of(column.combine_chunks())]


def _of(column: pa.Array) -> Iterator[pa.Array]:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if not pat.is_struct(column.type):
        yield column
    elif column.type.get_field_index(_LIST) >= 0:
        values = column.field(_LIST)
        yield values.flatten() if pat.is_list(values.type) else values


def _values(wanted: RowFilter, field: pa.Field, literals: Sequence[pa.Array]) -> pa.Array | None:
    """The candidates of a column's type, sorted, if rows with other values cannot match."""
    if not (pat.is_string(field.type) or pat.is_signed_integer(field.type)):
        return None
    alike = [one.cast(field.type) for one in literals if _is_alike(one, field.type)]
    if not alike:
        return None
    distinct = pc.unique(pa.concat_arrays(alike).drop_null())
    values = distinct.take(pc.array_sort_indices(distinct))
    if not 0 < len(values) <= MOST_KEYS or any(wanted.may_hold(list(_others(field.name, values)))):
        return None
    return values


def _is_alike(values: pa.Array, kind: pa.DataType) -> bool:
    """True if the values are of the column's kind and range."""
    if pat.is_string(kind):
        return bool(pat.is_string(values.type) or pat.is_large_string(values.type) or pat.is_string_view(values.type))
    if not pat.is_integer(values.type):
        return False
    try:
        values.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _others(name: str, values: pa.Array) -> Iterator[pc.Expression]:
    """Guarantees of the rows whose value is none of the (sorted) values."""
    column = pc.field(name)
    yield column.is_null()
    yield column < values[0]
    yield from ((column > low) & (column < high) for low, high in pairwise(values))
    yield column > values[-1]
