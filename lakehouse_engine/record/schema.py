"""Fits a batch's columns to the table's: what is allowed, and the conversion.

Columns match by name ignoring case (as in Spark and Hive); the table's spelling and order stay. A batch may hold narrower types, which are
cast up. With `evolve` it may also add columns, widen them along Avro's promotions (int -> long -> float -> double, which every reader of
Hudi tables applies to older files), and leave nullable ones out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import ReservedColumnError, SchemaIncompatibleError
from lakehouse_engine.model.keys import IS_DELETED, META_COLUMNS
from lakehouse_engine.record.types import check_names

RESERVED = frozenset((*META_COLUMNS, "_hoodie_operation"))
"""Columns that Hudi itself writes (the last one only with Flink's change log)."""

_PROMOTIONS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
_INTEGER_DIGITS = {pa.int32(): 10, pa.int64(): 19}


def check_reserved(schema: pa.Schema) -> None:
    """Refuse user columns with Hudi's names (in any case), and `_hoodie_is_deleted` unless it is boolean.

    Raises `ReservedColumnError` with the column.
    """
    for field in schema:
        name = field.name.lower()
        if name in RESERVED:
            raise ReservedColumnError(
                f"the column {field.name!r} has the name of a column that Hudi writes itself; leave it out or rename it", column=field.name
            )
        if name == IS_DELETED and (field.type != pa.bool_() or field.name != IS_DELETED):
            raise ReservedColumnError(
                f"the column {field.name!r} of type {field.type} would mark deleted rows: name it {IS_DELETED!r} and make it boolean,"
                " or rename it",
                column=field.name,
            )


def reconcile(table_schema: pa.Schema, incoming: pa.Schema, *, evolve: bool, partial: bool = False) -> pa.Schema:
    """The table's schema after a write of `incoming` (both canonical): the table's columns in order, new ones nullable at the end.

    Without `evolve` the result is `table_schema` itself, or an error. With `partial`, columns may be missing, but no nested ones. Raises
    `SchemaIncompatibleError` with the column (by path) and both types.
    """
    check_names(incoming)
    return pa.schema(_merge_fields(list(table_schema), list(incoming), "", evolve, evolve or partial))


def typed_nulls(offered: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The schema with the table's types for untyped parts, at every depth: columns of nulls only (pandas, `lit(None)`), empty lists and
    maps (`array()`), null members.
    """
    return pa.schema(_with_types(list(offered), list(table)))


def has_untyped(kind: pa.DataType) -> bool:
    """True if a type, or a nested one, is null."""
    if pat.is_struct(kind):
        return any(has_untyped(field.type) for field in _children(kind))
    if pat.is_map(kind):
        return has_untyped(kind.key_type) or has_untyped(kind.item_type)
    return bool(has_untyped(kind.value_type) if _is_list(kind) else pat.is_null(kind))


def _with_types(offered: Sequence[pa.Field], table: Sequence[pa.Field]) -> list[pa.Field]:
    types = {field.name.lower(): field.type for field in table}
    return [field.with_type(_typed(field.type, types.get(field.name.lower(), field.type))) for field in offered]


def _typed(offered: pa.DataType, table: pa.DataType) -> pa.DataType:
    if not has_untyped(offered):
        return offered
    if pat.is_null(offered):
        return table
    if pat.is_struct(offered) and pat.is_struct(table):
        return pa.struct(_with_types(_children(offered), _children(table)))
    if _is_list(offered) and pat.is_list(table):
        return pa.list_(pa.field("element", _typed(offered.value_type, table.value_type)))
    if pat.is_map(offered) and pat.is_map(table):
        return pa.map_(_typed(offered.key_type, table.key_type), pa.field("value", _typed(offered.item_type, table.item_type)))
    return offered


def _is_list(kind: pa.DataType) -> bool:
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def conform(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """The batch with exactly the columns of `schema`: reordered by name, missing ones null, types cast up, nested ones too.

    Matching columns are not copied. Extra columns are an error, and so are nulls where not allowed and values that a cast would change.
    Raises `SchemaIncompatibleError`.
    """
    positions = {name.lower(): index for index, name in enumerate(batch.column_names)}
    unknown = set(positions) - {field.name.lower() for field in schema}
    if unknown:
        raise SchemaIncompatibleError(f"the columns {sorted(unknown)} are not in the schema {schema.names}")
    columns = []
    for field in schema:
        index = positions.get(field.name.lower())
        column = None if index is None else batch.column(index)
        columns.append(_conform_column(column, field, batch.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)


def _merge_fields(
    table: Sequence[pa.Field], incoming: Sequence[pa.Field], path: str, evolve: bool, may_miss: bool
) -> list[pa.Field]:
    offered = {field.name.lower(): field for field in incoming}
    known = {field.name.lower() for field in table}
    merged = []
    for field in table:
        name = f"{path}{field.name}"
        other = offered.get(field.name.lower())
        if other is None:
            _check_may_miss(field, name, may_miss)
            merged.append(field)
        else:
            merged.append(field.with_type(_merge_type(field.type, other.type, name, evolve)))
    extra = [field for field in incoming if field.name.lower() not in known]
    if extra and not evolve:
        raise SchemaIncompatibleError(
            f"the table does not have the column {path}{extra[0].name!s} of type {extra[0].type};"
            " leave it out, or set hoodie.datasource.write.reconcile.schema=true to add it",
            column=f"{path}{extra[0].name}",
        )
    return merged + [field.with_nullable(True) for field in extra]


def _check_may_miss(field: pa.Field, name: str, may_miss: bool) -> None:
    if not field.nullable:
        raise SchemaIncompatibleError(f"the column {name} of type {field.type} takes no nulls and is not in the batch", column=name)
    if not may_miss:
        raise SchemaIncompatibleError(
            f"the column {name} of type {field.type} is not in the batch; add it (as null), or set"
            " hoodie.datasource.write.reconcile.schema=true to fill it with null",
            column=name,
        )


def _merge_type(table: pa.DataType, incoming: pa.DataType, name: str, evolve: bool) -> pa.DataType:
    if table == incoming or _fits(incoming, table):
        return table
    if pat.is_struct(table) and pat.is_struct(incoming):
        return pa.struct(_merge_fields(_children(table), _children(incoming), f"{name}.", evolve, evolve))
    if pat.is_list(table) and pat.is_list(incoming):
        element = table.value_field
        return pa.list_(element.with_type(_merge_type(element.type, incoming.value_type, f"{name}.element", evolve)))
    if pat.is_map(table) and pat.is_map(incoming) and table.key_type == incoming.key_type:
        item = table.item_field
        return pa.map_(table.key_type, item.with_type(_merge_type(item.type, incoming.item_type, f"{name}.value", evolve)))
    if incoming in _PROMOTIONS.get(table, ()):
        if evolve:
            return incoming
        remedy = "cast it, or set hoodie.datasource.write.reconcile.schema=true to widen the table's column"
    else:
        remedy = "cast it to the table's type"
    raise SchemaIncompatibleError(f"the column {name} is {table} in the table and {incoming} in the batch; {remedy}", column=name)


def _fits(incoming: pa.DataType, table: pa.DataType) -> bool:
    """True if every value of the first type fits the second (integers in floats are checked by value in the cast)."""
    if table in _PROMOTIONS.get(incoming, ()):
        return True
    if not pat.is_decimal(table):
        return False
    if pat.is_decimal(incoming):
        return bool(incoming.scale <= table.scale and incoming.precision - incoming.scale <= table.precision - table.scale)
    return bool(_INTEGER_DIGITS.get(incoming, 99) <= table.precision - table.scale)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _conform_column(column: pa.ChunkedArray | None, field: pa.Field, rows: int) -> pa.ChunkedArray:
    if column is None:
        column = pa.chunked_array([pa.nulls(rows, field.type)])
    elif column.type != field.type:
        column = pa.chunked_array(_conform_chunks(column.chunks, field), type=field.type)
    if not field.nullable and column.null_count:
        raise SchemaIncompatibleError(f"the column {field.name} takes no nulls and the batch has {column.null_count}", column=field.name)
    return column


def _conform_chunks(chunks: Iterable[pa.Array], field: pa.Field) -> list[pa.Array]:
    return [_conform_array(chunk, field.type, field.name) for chunk in chunks]


def _conform_array(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if array.type == kind:
        return array
    if pat.is_struct(kind) and pat.is_struct(array.type):
        return _conform_struct(array, kind, name)
    if pat.is_list(kind) and pat.is_list(array.type):
        values = _conform_array(array.flatten(), kind.value_type, f"{name}.element")
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=array.is_null())
    if pat.is_map(kind) and pat.is_map(array.type):
        return _conform_map(array, kind, name)
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaIncompatibleError(
            f"the column {name} is {kind} in the table and {array.type} in the batch, and its values do not fit: {error}", column=name
        ) from error


def _conform_struct(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    positions = {field.name.lower(): index for index, field in enumerate(_children(array.type))}
    unknown = set(positions) - {field.name.lower() for field in _children(kind)}
    if unknown:
        raise SchemaIncompatibleError(f"the fields {sorted(unknown)} are not in {kind}, the type of {name}", column=name)
    children = []
    for field in _children(kind):
        index = positions.get(field.name.lower())
        child = pa.nulls(len(array), field.type) if index is None else array.field(index)
        if not field.nullable and child.null_count and child.filter(array.is_valid()).null_count:
            raise SchemaIncompatibleError(
                f"the field {name}.{field.name} takes no nulls and the batch has some", column=f"{name}.{field.name}"
            )
        children.append(_conform_array(child, field.type, f"{name}.{field.name}"))
    return pa.StructArray.from_arrays(children, fields=_children(kind), mask=array.is_null())


def _conform_map(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    # As a list of entries: only kernels for lists respect slices and null maps.
    entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), array.type.item_field.with_name("value")])
    lists = array.cast(pa.list_(pa.field("entries", entry, nullable=False)))
    keys, items = lists.flatten().flatten()
    keys = _conform_array(keys, kind.key_type, f"{name}.key")
    items = _conform_array(items, kind.item_type, f"{name}.value")
    return pa.MapArray.from_arrays(_offsets(lists), keys, items, type=kind, mask=array.is_null())


def _offsets(array: pa.Array) -> pa.Array:
    """Offsets into the flattened values, in which null lists and parts outside a slice take no room."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
