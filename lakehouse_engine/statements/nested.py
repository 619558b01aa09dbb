"""Spark SQL expressions that change the inside of a column: fields dropped, renamed, assigned, or retyped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakehouse_engine.errors import SchemaIncompatibleError, SqlError, UnsupportedSqlError
from lakehouse_engine.record.nested import Path, children, field_at
from lakehouse_engine.spark.schema import to_arrow_type, to_spark_type
from lakehouse_engine.sql.grammar.casts import assigned_as, stored_as
from lakehouse_engine.sql.grammar.lexer import quote_name, quote_string
from lakehouse_engine.sql.grammar.statements import Assignments

NESTED = (StructType, ArrayType, MapType)


@dataclass(frozen=True, slots=True)
class Edits:
    """Changes by lower-case path, starting with the column's name. `assigned` holds expressions. `checks`: their values need a check for
    overflow, because the session's casts do not fail (`spark.settings.casts_refuse`).
    """

    dropped: frozenset[Path] = frozenset()
    renamed: Mapping[Path, str] = field(default_factory=dict)
    assigned: Mapping[Path, str] = field(default_factory=dict)
    checks: bool = False

    def below(self, path: Path) -> bool:
        """True if something inside `path` changes."""
        return any(len(one) > len(path) and one[: len(path)] == path for one in (*self.dropped, *self.renamed, *self.assigned))


def stored_value(value: str, kind: pa.DataType, *, checks: bool) -> str:
    """Expression with the type of its column; `checks` as in `Edits`, without values inside others."""
    name = to_spark_type(kind).simpleString()
    return assigned_as(value, name) if checks and not children(kind) else f"cast(({value}) as {name})"


def edited(value: str, kind: pa.DataType, path: Path, edits: Edits) -> str:
    """`value` (of type `kind`, at the lower-case `path`) with the edits applied.

    Assigning a field of a null struct gives a struct whose other fields are null. Raises `UnsupportedSqlError` for an assignment inside a
    list or map, and for a struct that would lose its last field; `SqlError` for an unknown field.
    """
    given = edits.assigned.get(path)
    if given is not None:
        return stored_value(given, kind, checks=edits.checks)
    if not edits.below(path):
        return value
    if pat.is_struct(kind):
        return _struct(value, kind, path, edits)
    assigned = next((one for one in edits.assigned if one[: len(path)] == path), None)
    if assigned is not None:
        what = "is inside of a list or map" if children(kind) else f"has no fields, being {to_spark_type(kind).simpleString()}"
        raise UnsupportedSqlError(f"{'.'.join(assigned)} cannot be assigned: {'.'.join(path)} {what}", column=".".join(assigned))
    return _items(value, kind, path, lambda item, below, name: edited(item, below, (*path, name), edits))


def _struct(value: str, kind: pa.DataType, path: Path, edits: Edits) -> str:
    fields = children(kind)
    _check_assigned(fields, path, edits)
    parts = []
    for one in fields:
        own = (*path, one.name.lower())
        if own not in edits.dropped:
            parts += [quote_string(edits.renamed.get(own, one.name)), edited(f"{value}.{quote_name(one.name)}", one.type, own, edits)]
    if not parts:
        raise UnsupportedSqlError(f"{'.'.join(path)} would be left without a field; drop it as a whole", column=".".join(path))
    made = f"named_struct({', '.join(parts)})"
    return made if any(one[: len(path)] == path for one in edits.assigned) else f"if({value} is null, null, {made})"


def _check_assigned(fields: list[pa.Field], path: Path, edits: Edits) -> None:
    known = {one.name.lower() for one in fields}
    for one in edits.assigned:
        if one[: len(path)] == path and one[len(path)] not in known:
            has = ", ".join(one.name for one in fields)
            raise SqlError(f"{'.'.join(path)} has no field {one[len(path)]!r}; it has {has}", column=".".join(one))


def _items(value: str, kind: pa.DataType, path: Path, change: Callable[[str, pa.DataType, str], str]) -> str:
    item = quote_name(f"__lakehouse_{len(path)}")
    if pat.is_list(kind):
        return f"transform({value}, {item} -> {change(item, kind.value_type, 'element')})"
    return f"transform_values({value}, (__lakehouse_key, {item}) -> {change(item, kind.item_type, 'value')})"


def conformed(value: str, kind: pa.DataType, wanted: pa.DataType, stored: str | None = None, depth: int = 0) -> str:
    """`value` (of type `kind`) in the type `wanted`, struct fields matched by name. Fields that `kind` lacks come from `stored`.

    `stored` has the type `wanted`; without it, and inside lists and maps, they are null.
    """
    if kind == wanted:
        return value
    if pat.is_struct(kind) and pat.is_struct(wanted):
        return _conformed_struct(value, kind, wanted, stored, depth)
    if (pat.is_list(kind) and pat.is_list(wanted)) or (pat.is_map(kind) and pat.is_map(wanted)):
        inner = wanted.value_type if pat.is_list(wanted) else wanted.item_type
        return _items(value, kind, ("",) * depth, lambda item, below, _: conformed(item, below, inner, None, depth + 1))
    if children(kind) or children(wanted):
        return f"cast({value} as {to_spark_type(wanted).simpleString()})"
    return stored_as(value, to_spark_type(kind).simpleString(), to_spark_type(wanted).simpleString())


def _conformed_struct(value: str, kind: pa.DataType, wanted: pa.DataType, stored: str | None, depth: int) -> str:
    offered = {one.name.lower(): one for one in children(kind)}
    parts = []
    for one in children(wanted):
        name, given = quote_name(one.name), offered.get(one.name.lower())
        kept = None if stored is None else f"{stored}.{name}"
        null = f"cast(null as {to_spark_type(one.type).simpleString()})"
        made = kept or null if given is None else conformed(f"{value}.{quote_name(given.name)}", given.type, one.type, kept, depth + 1)
        parts += [quote_string(one.name), made]
    return f"if({value} is null, null, named_struct({', '.join(parts)}))"


def check_fields(kind: pa.DataType, wanted: pa.DataType, path: str, what: str = "") -> None:
    """Raise `SqlError` for a field in `kind` that `wanted` lacks; `what` and `path` name the value.

    A null value has every field.
    """
    known = {one.name.lower(): one for one in children(wanted)}
    for one in [] if pat.is_null(wanted) else children(kind):
        own = known.get(one.name.lower())
        if own is None:
            has = f"it has {', '.join(other.name for other in known.values())}" if known else "it has no fields"
            raise SqlError(f"{what}{path} has no field {one.name!r}; {has}", column=f"{path}.{one.name}")
        check_fields(one.type, own.type, f"{path}.{own.name}", what)


def by_field_names(assignments: Assignments, schema: pa.Schema, kinds_of: Callable[[Sequence[str]], Sequence[DataType]]) -> Assignments:
    """Assignments with struct fields in the columns' order, because Spark casts by position.

    `kinds_of` gives the types of expressions. Raises `SqlError` for a struct with other fields than its column.
    """
    wanted = [_kind_at(schema, tuple(name.lower().split("."))) for name, _ in assignments]
    numbers = [number for number, kind in enumerate(wanted) if kind is not None and children(kind)]
    kinds = kinds_of([assignments[number][1] for number in numbers]) if numbers else []
    made = list(assignments)
    for number, given in zip(numbers, kinds, strict=True):
        kind, (name, text) = wanted[number], assignments[number]
        if kind is not None and isinstance(given, NESTED):
            made[number] = (name, in_fields_order(name, f"({text})", to_arrow_type(given, name), kind))
    return tuple(made)


def in_fields_order(name: str, value: str, given: pa.DataType, wanted: pa.DataType) -> str:
    """`value` for the column `name` with struct fields in the column's order. Raises `SqlError` if the fields differ."""
    if _in_order(given, wanted):
        return value
    check_fields(given, wanted, name)
    check_fields(wanted, given, name, "the value for ")
    return conformed(value, given, wanted)


def _in_order(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if fields at the same position have the same name, at every depth. `struct(1, 2)` has only positions, and `null` and `array()`
    fit everything.
    """
    if pat.is_null(given):
        return True
    own, others = children(given), children(wanted)
    names, known = ([one.name.lower() for one in fields] for fields in (own, others))
    unnamed = pat.is_struct(given) and names == [f"col{at}" for at in range(1, len(known) + 1)] and not set(names) & set(known)
    return (unnamed or names == known) and all(_in_order(one.type, other.type) for one, other in zip(own, others, strict=True))


def _kind_at(schema: pa.Schema, path: Path) -> pa.DataType | None:
    """Value at a path; None if it does not exist."""
    try:
        return field_at(schema, path)[1].type
    except SchemaIncompatibleError:
        return None
