"""Nested columns: resolves paths, and changes a schema at one.

A path names struct fields; `element` is a list's item, `value` a map's, as in Spark's ALTER TABLE. Case is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError

Path = tuple[str, ...]


def children(kind: pa.DataType) -> list[pa.Field]:
    """Next steps of a path from a type: a struct's fields, a list's `element`, a map's `value`."""
    if pat.is_struct(kind):
        return [kind.field(number) for number in range(kind.num_fields)]
    if pat.is_list(kind):
        return [kind.value_field.with_name("element")]
    return [kind.item_field.with_name("value")] if pat.is_map(kind) else []


def field_at(schema: pa.Schema, path: Path) -> tuple[Path, pa.Field]:
    """The path in the schema's spelling, and its field. Raises `SchemaIncompatibleError` naming the first part that does not exist."""
    fields, found = list(schema), None
    spelled: Path = ()
    for number, part in enumerate(path):
        found = next((field for field in fields if field.name.lower() == part.lower()), None)
        if found is None:
            where = f"the column {'.'.join(path[:number])} has no field" if number else "the table has no column"
            known = f"; it has {', '.join(field.name for field in fields)}" if fields else ", and no fields at all"
            raise SchemaIncompatibleError(f"{where} {part!r}{known}", column=".".join(path))
        spelled = (*spelled, found.name)
        fields = children(found.type)
    if found is None:
        raise SchemaIncompatibleError("a path without names leads to no column")
    return spelled, found


def alone(schema: pa.Schema, parent: Path, field: pa.Field) -> pa.Field:
    """The top-level column of `parent` with only `field` inside: a schema change, in the form of a batch."""
    for length in range(len(parent), 0, -1):
        _, around = field_at(schema, parent[:length])
        field = around.with_type(_around(around.type, field, ".".join(parent[:length])))
    return field


def _around(kind: pa.DataType, field: pa.Field, path: str) -> pa.DataType:
    if pat.is_struct(kind):
        return pa.struct([field])
    if pat.is_list(kind) and field.name == "element":
        return pa.list_(field)
    if pat.is_map(kind) and field.name == "value":
        return pa.map_(kind.key_type, field)
    raise SchemaIncompatibleError(f"{path} is {kind}, which has no field {field.name!r} and can be given none", column=path)


def placed(schema: pa.Schema, path: Path, after: str | None) -> pa.Schema:
    """The schema with the column at `path` moved first among its siblings, or behind `after`.

    Raises `SchemaIncompatibleError` for an unknown column, or one without ordered siblings.
    """
    return pa.schema(_placed(list(schema), field_at(schema, path)[0], after, ""))


def _placed(fields: Sequence[pa.Field], path: Path, after: str | None, above: str) -> list[pa.Field]:
    if len(path) > 1:
        return [_inside(field, path, after, f"{above}{field.name}") if field.name == path[0] else field for field in fields]
    own = next(field for field in fields if field.name == path[0])
    others = [field for field in fields if field is not own]
    if after is None:
        return [own, *others]
    names = [field.name.lower() for field in others]
    if after.lower() not in names:
        known = ", ".join(field.name for field in others) or "none"
        message = f"there is no column {after!r} beside {above}{path[0]} that it could be placed after; there are: {known}"
        raise SchemaIncompatibleError(message, column=f"{above}{path[0]}")
    at = names.index(after.lower()) + 1
    return [*others[:at], own, *others[at:]]


def _inside(field: pa.Field, path: Path, after: str | None, name: str) -> pa.Field:
    inner = _placed(children(field.type), path[1:], after, f"{name}.")
    if pat.is_struct(field.type):
        return field.with_type(pa.struct(inner))
    if len(path) == 2:
        raise SchemaIncompatibleError(f"{name}.{path[1]} is alone in {name} and has no place among others", column=name)
    kind = pa.list_(inner[0]) if pat.is_list(field.type) else pa.map_(field.type.key_type, inner[0])
    return field.with_type(kind)


def with_new_fields(known: Sequence[pa.Field], given: Sequence[pa.Field]) -> list[pa.Field]:
    """Known fields in their types and order, then new ones of `given`, at every depth. No type changes."""
    offered = {field.name.lower(): field for field in given}
    names = {field.name.lower() for field in known}
    kept = [
        field if field.name.lower() not in offered else field.with_type(_grown(field.type, offered[field.name.lower()].type))
        for field in known
    ]
    return kept + [field.with_nullable(True) for field in given if field.name.lower() not in names]


def _grown(known: pa.DataType, given: pa.DataType) -> pa.DataType:
    if pat.is_struct(known) and pat.is_struct(given):
        return pa.struct(with_new_fields(children(known), children(given)))
    if pat.is_list(known) and pat.is_list(given):
        return pa.list_(known.value_field.with_type(_grown(known.value_type, given.value_type)))
    if pat.is_map(known) and pat.is_map(given):
        return pa.map_(known.key_type, known.item_field.with_type(_grown(known.item_type, given.item_type)))
    return known
