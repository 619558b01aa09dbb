"""Converts a file's columns to those that a table wants.

Names match exactly, else without regard to case; a column that the file lacks is null; types widen as Hudi lets them. Lists are accepted in
every Parquet form (two-level `array`, three-level `bag.array` and `list.element`), because in Arrow only their child's name differs
(hudi-format 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.record.text import java_text


def match_name(names: Sequence[str], wanted: str, path: str = "", others: Sequence[str] = ()) -> int | None:
    """Index of the name `wanted`, or of the only name that equals it without regard to case; None if there is none.

    A name that is exactly one of `others`, all columns of the table, matches only that column. Raises `SchemaIncompatibleError` if several
    names differ from `wanted` only in case.
    """
    if wanted in names:
        return names.index(wanted)
    lowered = wanted.lower()
    found = [index for index, name in enumerate(names) if name.lower() == lowered and name not in others]
    if len(found) > 1:
        raise SchemaIncompatibleError(
            f"the file has {len(found)} columns that are {wanted!r} but for case: {[names[index] for index in found]}", path=path
        )
    return found[0] if found else None


def convert(column: pa.ChunkedArray, target: pa.DataType, name: str) -> pa.ChunkedArray:
    """The column as `target`, chunk by chunk; the same object if it already has that type.

    Raises `SchemaIncompatibleError` naming the column (with its path in nested types) if the stored type does not widen to the table's, or
    a value does not fit.
    """
    if _same(column.type, target):
        return column
    return pa.chunked_array([_convert(chunk, target, name) for chunk in column.chunks], type=target)


def _same(stored: pa.DataType, target: pa.DataType) -> bool:
    # Equality of nested types ignores the names of list and map children; their text does not.
    return bool(stored == target) and (not pat.is_nested(target) or str(stored) == str(target))


def _convert(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    if _same(array.type, target):
        return array
    if pat.is_dictionary(array.type):
        return _convert(array.dictionary_decode(), target, name)
    if pat.is_struct(target) and pat.is_struct(array.type):
        return _struct(array, target, name)
    if pat.is_map(target) and pat.is_map(array.type):
        return _map(array, target, name)
    if pat.is_list(target) and _is_list(array.type):
        return _list(array, target, name)
    return _leaf(array, target, name)


def _is_list(kind: pa.DataType) -> bool:
    checks = (pat.is_list, pat.is_large_list, pat.is_fixed_size_list, pat.is_list_view, pat.is_large_list_view)
    return any(check(kind) for check in checks)


def _struct(array: pa.StructArray, target: pa.StructType, name: str) -> pa.Array:
    fields = [target.field(index) for index in range(target.num_fields)]
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    others = [field.name for field in fields]
    children = []
    for field in fields:
        index = match_name(names, field.name, name, others)
        path = f"{name}.{field.name}"
        children.append(pa.nulls(len(array), field.type) if index is None else _convert(array.field(index), field.type, path))
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))


def _list(array: pa.Array, target: pa.ListType, name: str) -> pa.Array:
    plain = array if pat.is_list(array.type) else array.cast(pa.list_(array.type.value_type))
    offsets, start, length = _rebased(plain)
    values = _convert(plain.values.slice(start, length), target.value_type, f"{name}.{target.value_field.name}")
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=_mask(plain))


def _map(array: pa.MapArray, target: pa.MapType, name: str) -> pa.Array:
    offsets, start, length = _rebased(array)
    keys = _convert(array.keys.slice(start, length), target.key_type, f"{name}.key")
    items = _convert(array.items.slice(start, length), target.item_type, f"{name}.value")
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(array))


def _rebased(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Offsets rebased to start at 0, and the start and length of their child values."""
    offsets = array.offsets
    start, stop = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, pa.scalar(start, offsets.type)), start, stop - start


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _leaf(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    if not _widens(array.type, target):
        raise SchemaIncompatibleError(f"the file has {name!r} as {array.type}, which does not widen to the table's {target}", column=name)
    try:
        if pat.is_integer(array.type) and pat.is_floating(target):
            return array.cast(target, safe=False)
        if pat.is_floating(array.type):
            return from_floating(array, target)
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaIncompatibleError(
            f"a value of {name!r}, stored as {array.type}, does not fit the table's {target}: {error}", column=name
        ) from error


def from_floating(values: Any, target: pa.DataType) -> Any:
    """Convert floating point to text or a wider type as Hudi does (`HoodieAvroUtils.rewritePrimaryType`): a `float` 0.3 becomes the
    `double` 0.3, not IEEE 754's 0.30000001192092896.

    `values` are an array or a scalar. Keeps order: larger values give larger results.
    """
    if pat.is_string(target):
        return java_text(values)
    return values.cast(pa.string()).cast(target) if values.type == pa.float32() and target == pa.float64() else values.cast(target)


def _widens(stored: pa.DataType, target: pa.DataType) -> bool:
    """True for Hudi's promotions (`AvroSchemaUtils`, schema evolution table of its documentation), and between stored forms of one type."""
    if pat.is_null(stored):
        return True
    if pat.is_integer(stored):
        return _integer_widens(stored, target)
    if pat.is_floating(stored):
        return bool(pat.is_string(target) or (pat.is_floating(target) and target.bit_width >= stored.bit_width))
    families = (pat.is_decimal, pat.is_timestamp, pat.is_date, _is_bytes)
    return any(member(stored) and member(target) for member in families)


def _integer_widens(stored: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_integer(target):
        return bool(target.bit_width >= stored.bit_width)
    return any(member(target) for member in (pat.is_floating, pat.is_decimal, pat.is_string))


def _is_bytes(kind: pa.DataType) -> bool:
    checks = (pat.is_string, pat.is_large_string, pat.is_string_view, pat.is_binary, pat.is_large_binary, pat.is_fixed_size_binary)
    return any(check(kind) for check in checks) or pat.is_binary_view(kind)
