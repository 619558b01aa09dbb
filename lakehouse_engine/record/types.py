"""Arrow types that the engine uses, and conversions to them.

Canonical: bool, int32, int64, float, double, string, binary, decimal128, date32, timestamp("us", "UTC"), and list<element>, map<string,
value>, struct of those. Each has exactly one Avro and one Parquet form in Hudi (table format, "Columns and types"). A type that widens into
one of them without loss is converted; others are refused by column path.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError, UnsupportedTypeError

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MAX_DECIMAL_PRECISION = 38

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]+")
_WIDENED: dict[pa.DataType, pa.DataType] = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
}
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("uint64", "cast it to decimal(20,0), or to long if its values fit"),
    ("null", "cast it to the type that its values would have"),
    ("time", "store it as text or as a number of microseconds"),
    ("duration", "store it as a number of microseconds"),
    ("month", "store an interval as numbers"),
    ("map", "a map's keys must be text: cast them, or use a list of structs"),
    ("decimal", f"a decimal has 1 to {MAX_DECIMAL_PRECISION} digits and a scale from 0 to that number"),
    ("struct", "a struct needs at least one field"),
)


def canonical_schema(schema: pa.Schema, *, allow_timestamp_ntz: bool = False) -> pa.Schema:
    """The schema in canonical types, every column nullable and without Arrow metadata.

    Raises `UnsupportedTypeError` with the column's path for a type that Hudi cannot hold (`timestamp` without zone too, unless
    `allow_timestamp_ntz`), and `SchemaIncompatibleError` for a name that Avro cannot hold or that occurs twice.
    """
    check_names(schema)
    return pa.schema([pa.field(field.name, _canonical(field.type, field.name, allow_timestamp_ntz)) for field in schema])


def canonical_table(table: pa.Table, *, allow_timestamp_ntz: bool = False, untrusted: bool = False) -> pa.Table:
    """The table in canonical types; columns that already have them are not copied.

    `untrusted` also checks all text to be UTF-8 (for Arrow data from outside this process). Raises as `canonical_schema`, and
    `UnsupportedTypeError` if a value does not fit (nanoseconds that are not whole microseconds).
    """
    schema = canonical_schema(table.schema, allow_timestamp_ntz=allow_timestamp_ntz)
    if untrusted:
        for name, column in zip(table.column_names, table.columns, strict=True):
            _check_text(name, column)
    columns = [_cast(table.column(index), field) for index, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def canonical_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, in one piece, in its canonical type (timestamps without zone included)."""
    field = pa.field("value", _canonical(array.type, "value", True))
    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return _cast(chunked, field).combine_chunks()


def check_names(fields: Iterable[pa.Field], path: str = "") -> None:
    """Refuse names that Avro cannot hold and names that differ only in case, at every depth.

    Raises `SchemaIncompatibleError` with the column.
    """
    names = [field.name for field in fields]
    where = f" of {path!r}" if path else ""
    for name in names:
        if not _AVRO_NAME.match(name):
            raise SchemaIncompatibleError(
                f"the column name {name!r}{where} is not letters, digits and underscores starting with a letter or underscore,"
                f" which is all an Avro name can hold{_renaming(name, names)}",
                column=f"{path}.{name}" if path else name,
            )
    check_differ(names, where)


def _renaming(name: str, taken: Sequence[str]) -> str:
    """Advice for a name that Avro cannot hold: a similar alias that no other column has."""
    plain = unicodedata.normalize("NFKD", name.replace("\N{LATIN SMALL LETTER SHARP S}", "ss"))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    made = _NOT_IN_NAME.sub("_", plain).strip("_")
    if not made:
        return "; rename it"
    made = f"_{made}" if made[0].isdigit() else made
    while made.lower() in {other.lower() for other in taken}:
        made += "_"
    shown = name.replace("`", "``")
    return f"; rename it, in a query by an alias: `{shown}` as {made}"


def check_differ(names: Sequence[str], where: str = "") -> None:
    """Raise `SchemaIncompatibleError` for columns with equal names, ignoring case; `where` says what contains them."""
    doubled = [name for name, count in Counter(name.lower() for name in names).items() if count > 1]
    if doubled:
        same = [name for name in names if name.lower() == doubled[0]]
        raise SchemaIncompatibleError(f"the columns {same}{where} have one name, as case does not count; rename one", column=same[0])


def _canonical(kind: pa.DataType, path: str, allow_ntz: bool) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):  # checked first: a type written in Python need not even have a hash
        raise _unsupported(kind, path)
    if kind in _WIDENED:
        return _WIDENED[kind]
    if pat.is_dictionary(kind):
        return _canonical(kind.value_type, path, allow_ntz)
    if pat.is_fixed_size_binary(kind):
        return pa.binary()
    if pat.is_timestamp(kind):
        return _canonical_timestamp(kind, path, allow_ntz)
    if pat.is_decimal(kind):
        return _canonical_decimal(kind, path)
    if pat.is_map(kind):
        if _canonical(kind.key_type, f"{path}.key", allow_ntz) != pa.string():
            raise _unsupported(kind, path)
        return pa.map_(pa.string(), pa.field("value", _canonical(kind.item_type, f"{path}.value", allow_ntz)))
    if pat.is_struct(kind) and kind.num_fields:
        fields = [kind.field(index) for index in range(kind.num_fields)]
        check_names(fields, path)
        return pa.struct([pa.field(field.name, _canonical(field.type, f"{path}.{field.name}", allow_ntz)) for field in fields])
    if _is_list(kind):
        return pa.list_(pa.field("element", _canonical(kind.value_type, f"{path}.element", allow_ntz)))
    raise _unsupported(kind, path)


def _canonical_timestamp(kind: pa.DataType, path: str, allow_ntz: bool) -> pa.DataType:
    if kind.tz is not None:
        return TIMESTAMP
    if allow_ntz:
        return TIMESTAMP_NTZ
    raise UnsupportedTypeError(
        f"the column {path!r} is a timestamp without zone, which Hudi 0.15 and hudi-rs cannot read; cast it to timestamp with zone"
        " (`cast(... as timestamp)` in Spark), or set lakehouse.allow.timestamp.ntz=true for tables that only Hudi 1.x reads",
        column=path,
    )


def _canonical_decimal(kind: pa.DataType, path: str) -> pa.DataType:
    if kind.precision > MAX_DECIMAL_PRECISION or not 0 <= kind.scale <= kind.precision:
        raise _unsupported(kind, path)
    return pa.decimal128(kind.precision, kind.scale)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def _unsupported(kind: pa.DataType, path: str) -> UnsupportedTypeError:
    name = str(kind)
    remedy = next((text for start, text in _REMEDIES if name.startswith(start)), "cast it to a type that Hudi has")
    return UnsupportedTypeError(f"the column {path!r} has the type {name}, which a Hudi table cannot hold; {remedy}", column=path)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedTypeError(
            f"the column {field.name!r} of type {column.type} does not fit {field.type} without loss: {error};"
            " truncate or cast its values first",
            column=field.name,
        ) from error


def _check_text(name: str, column: pa.ChunkedArray) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UnsupportedTypeError(f"the column {name!r} holds broken values: {error}; store bytes as binary", column=name) from error
