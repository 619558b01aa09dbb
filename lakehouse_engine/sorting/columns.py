"""Converts sort columns to types whose Arrow order is the wanted one.

The order is that of Spark's `ORDER BY` (`SortOrder`, ascending): nulls first, text and binary by bytes, -0.0 equal to 0.0, NaN above all
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import OptionError

_SHORT_DECIMAL = 18
"""Most digits of a decimal whose unscaled value fits 64 bits."""


def chosen_columns(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """The names as the schema spells them; a name without an exact match matches in any case.

    Raises `OptionError` if there are no names, or a name is repeated, matches no column or several, or its column has no order.
    """
    if not names:
        raise OptionError("rows are to be ordered by columns, and none is named")
    found = [_spelled(schema, name) for name in names]
    repeated = next((name for place, name in enumerate(found) if name in found[:place]), None)
    if repeated is not None:
        raise OptionError(f"rows are to be ordered by the column {repeated!r} twice: name it once", column=repeated)
    for name in found:
        check_ordered(schema.field(name).type, name)
    return found


def _spelled(schema: pa.Schema, name: str) -> str:
    alike = [known for known in schema.names if known.lower() == name.lower()]
    exact = [known for known in alike if known == name]
    if len(exact or alike) == 1:
        return str((exact or alike)[0])
    problem = "several columns have this name" if alike else f"there is no such column; the columns are {', '.join(schema.names)}"
    raise OptionError(f"rows cannot be ordered by {name!r}: {problem}", column=name)


def check_ordered(kind: pa.DataType, name: str) -> None:
    """Raise `OptionError` for a type without an order: nested types and intervals."""
    value = kind.value_type if pat.is_dictionary(kind) else kind
    plain = pat.is_null(value) or pat.is_boolean(value) or pat.is_integer(value) or pat.is_floating(value) or pat.is_decimal(value)
    if not (plain or _is_moment(value) or _is_bytes(value)):
        raise OptionError(
            f"rows cannot be ordered by the column {name!r} of type {kind}: name columns of numbers, text, bytes, dates, times or"
            " booleans",
            column=name,
        )


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pat.is_temporal(kind) and not pat.is_interval(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    """Excludes view types: Arrow does not reorder their rows."""
    known = (pat.is_string, pat.is_large_string, pat.is_binary, pat.is_large_binary, pat.is_fixed_size_binary)
    return any(is_one(kind) for is_one in known)


def ordered(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in a type whose Arrow order is the wanted one: a number, a long decimal, or large binary. Nulls stay nulls.

    `check_ordered` must have accepted its type. For a dictionary, returns the rank of each value within the dictionary.
    """
    kind = column.type
    if pat.is_dictionary(kind):
        encoded = flat(column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column)
        return _ranked(ordered(encoded.dictionary)).take(encoded.indices)
    if pat.is_null(kind):
        return pa.nulls(len(column), pa.int8())
    if pat.is_fixed_size_binary(kind):
        return flat(column.cast(pa.binary()).cast(pa.large_binary()))
    if _is_bytes(kind):
        return flat(column.cast(pa.large_binary()))
    if pat.is_boolean(kind):
        return flat(column.cast(pa.uint8()))
    if pat.is_floating(kind):
        return _by_bits(flat(column.cast(pa.float64())))
    if pat.is_decimal(kind):
        return _decimals(flat(column))
    values = flat(column)
    return values.view(pa.int32() if kind.bit_width == 32 else pa.int64()) if pat.is_temporal(kind) else values


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as a single array."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def numbers(values: pa.Array, missing: int = 0) -> npt.NDArray[np.integer]:
    """Whole numbers as a numpy array of their type; null becomes `missing`."""
    return np.asarray(values.fill_null(missing) if values.null_count else values)


def _ranked(values: pa.Array) -> pa.Array:
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    return pc.if_else(values.is_valid(), ranks, pa.scalar(None, ranks.type))


def _by_bits(values: pa.Array) -> pa.Array:
    """Doubles as whole numbers with Spark's order of doubles."""
    plain = np.asarray(values.fill_null(0.0)) + 0.0  # -0.0 becomes 0.0
    plain[np.isnan(plain)] = np.nan  # a single positive NaN, whose bits are above those of infinity
    bits = plain.view(np.int64)
    # For negative numbers, larger bits mean a smaller value.
    sortable = bits ^ ((bits >> np.int64(63)) & np.int64(2**63 - 1))
    return pa.array(sortable, mask=np.asarray(values.is_null()))


def _decimals(values: pa.Array) -> pa.Array:
    """Short decimals as their unscaled value, which is in the lower half of the 128 bits."""
    if values.type.precision > _SHORT_DECIMAL:
        return values
    wide = values if pat.is_decimal128(values.type) else values.cast(pa.decimal128(values.type.precision, values.type.scale))
    halves = np.frombuffer(wide.buffers()[1], np.int64) if len(wide) else np.empty(0, np.int64)
    lower = halves[0::2] if np.little_endian else halves[1::2]
    return pa.array(lower[wide.offset : wide.offset + len(wide)], mask=np.asarray(wide.is_null()))
