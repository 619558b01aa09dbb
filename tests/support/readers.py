"""Independent readings of a table, and the comparison that every test uses.

`read_with_hudi_rs` reads through hudi-rs (the PyPI package `hudi`). `assert_same_rows` compares two Arrow tables by content: column
order and row order do not matter, types and values do.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hudi
import pyarrow as pa
import pyarrow.compute as pc

RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
META_COLUMNS = ("_hoodie_commit_time", "_hoodie_commit_seqno", RECORD_KEY, PARTITION_PATH, "_hoodie_file_name")


def read_with_hudi_rs(
    path: str | Path, as_of: str | None = None, begin: str | None = None, end: str | None = None, read_optimized: bool = False
) -> pa.Table:
    """What hudi-rs reads from the table at `path`, with the meta columns; `begin` is exclusive, `end` inclusive.

    A table in a bucket it reads through its own client, with the credentials of the environment.
    """
    if os.environ.get("LAKEHOUSE_STORE") == "memory" and "://" in str(path):
        with TemporaryDirectory() as folder:
            Path(path).download(Path(folder))  # type: ignore[attr-defined]
            return read_with_hudi_rs(folder, as_of, begin, end, read_optimized)
    of_store = {name: value for name, value in os.environ.items() if name.startswith("AWS_")} if "://" in str(path) else {}
    table = hudi.HudiTable(str(path), of_store)
    options = hudi.HudiReadOptions()
    if begin is not None or end is not None:
        options = options.with_query_type(hudi.HudiQueryType.Incremental)
        options = options.with_start_timestamp(begin) if begin is not None else options
        options = options.with_end_timestamp(end) if end is not None else options
    if as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    if read_optimized:
        options = options.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
    batches = [pa.record_batch(batch) for batch in table.read(options)]
    if not batches:
        return pa.schema(table.get_schema_with_meta_fields()).empty_table()
    # Files from before a column was added give batches without it; widened columns give batches of the narrow type.
    return pa.concat_tables([pa.table(batch) for batch in batches], promote_options="permissive")


def user_columns(table: pa.Table) -> pa.Table:
    """The table without Hudi's meta columns."""
    return table.drop_columns([name for name in META_COLUMNS if name in table.column_names])


def assert_same_rows(actual: pa.Table, expected: pa.Table, *, ignore: Iterable[str] = (), what: str = "") -> None:
    """Fail with the first difference between the two tables, and with `what` they are; columns named in `ignore` are left out of both."""
    difference = first_difference(actual, expected, ignore=ignore)
    if difference is not None:
        raise AssertionError(f"{what}: {difference}" if what else difference)


def first_difference(actual: pa.Table, expected: pa.Table, *, ignore: Iterable[str] = ()) -> str | None:
    """The first difference in columns, types, row count or values, as a sentence; None when there is none.

    What carries no meaning is levelled before: large and view forms of strings, binaries and lists, dictionaries, field names
    inside lists and maps, nullability, the unit of a timestamp, the order of a map's entries. An int32 is not an int64,
    a decimal(10,2) not a decimal(12,2), and a timestamp with a zone not one without. NaN equals NaN.
    """
    left_out = set(ignore)
    actual, expected = (table.drop_columns([name for name in table.column_names if name in left_out]) for table in (actual, expected))
    found = _schema_difference(actual.schema, expected.schema)
    if found is not None:
        return found
    names = [name for name in (RECORD_KEY, PARTITION_PATH) if name in expected.column_names]
    names += [name for name in sorted(expected.column_names) if name not in names]
    actual, expected = (_sorted(_levelled(table.select(names))) for table in (actual, expected))
    if actual.num_rows != expected.num_rows:
        return _count_difference(actual, expected)
    differences = ((_first_unequal(actual.column(name), expected.column(name)), name) for name in names)
    rows = [(row, name) for row, name in differences if row is not None]
    if not rows:
        return None
    row, name = min(rows)
    ours, theirs = (table.column(name)[row].as_py() for table in (actual, expected))
    columns = sorted({column for _, column in rows})
    return (
        f"row {row} of {expected.num_rows} (sorted), column '{name}': actual {ours!r}, expected {theirs!r}\n"
        f"columns that differ somewhere: {columns}\nactual row:   {_row(actual, row)}\nexpected row: {_row(expected, row)}"
    )


def level_type(kind: pa.DataType) -> pa.DataType:
    """The one type that stands for all forms of `kind` that mean the same."""
    if pa.types.is_dictionary(kind):
        return level_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        # A zone only says how an instant is shown; its absence says that it is none.
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_map(kind):
        return pa.map_(level_type(kind.key_type), level_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(pa.field("element", level_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, level_type(field.type)) for field in kind])
    return kind


def _schema_difference(actual: pa.Schema, expected: pa.Schema) -> str | None:
    for side, schema in (("actual", actual), ("expected", expected)):
        repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if repeated:
            return f"{side} has columns twice: {repeated}"
    missing, extra = sorted(set(expected.names) - set(actual.names)), sorted(set(actual.names) - set(expected.names))
    if missing or extra:
        return f"columns differ: missing {missing}, unexpected {extra}"
    for name in expected.names:
        ours, theirs = level_type(actual.field(name).type), level_type(expected.field(name).type)
        if ours != theirs:
            return f"column '{name}': actual type {ours}, expected type {theirs}"
    return None


def _nested(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind)


def _levelled(table: pa.Table) -> pa.Table:
    columns = []
    for column in table.columns:
        kind = level_type(column.type)
        columns.append(column if _nested(kind) or column.type == kind else column.cast(kind))
    return pa.table(columns, names=table.column_names)


def _sorted(table: pa.Table) -> pa.Table:
    """Rows in an order that depends on their content only; nested columns are ordered by their text."""
    keys = {}
    for index, column in enumerate(table.columns):
        if _nested(column.type):
            keys[str(index)] = pa.array([repr(_plain(value, column.type)) for value in column.to_pylist()], pa.string())
        elif pa.types.is_null(column.type):
            continue
        else:
            keys[str(index)] = column
    if not keys:
        return table
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(order)


def _first_unequal(actual: pa.ChunkedArray, expected: pa.ChunkedArray) -> int | None:
    if actual.equals(expected):
        return None
    if _nested(expected.type):
        pairs = zip(actual.to_pylist(), expected.to_pylist(), strict=True)
        return next((row for row, (a, b) in enumerate(pairs) if _plain(a, actual.type) != _plain(b, expected.type)), None)
    same = pc.or_(pc.fill_null(pc.equal(actual, expected), False), pc.and_(pc.is_null(actual), pc.is_null(expected)))
    if pa.types.is_floating(expected.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(actual), pc.is_nan(expected)), False))
    row = pc.index(same, False).as_py()
    return None if row < 0 else row


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value in which equal means equal: NaN as text, a map as its sorted entries, a timestamp with a zone in UTC."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        entries = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=repr)
    if pa.types.is_struct(kind):
        return [(field.name, _plain(value[field.name], field.type)) for field in kind]
    if pa.types.is_nested(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc)
    return value


def _count_difference(actual: pa.Table, expected: pa.Table) -> str:
    text = f"actual has {actual.num_rows} rows, expected {expected.num_rows}"
    rows = min(actual.num_rows, expected.num_rows)
    unequal = [
        row
        for name in expected.column_names
        if (row := _first_unequal(actual.column(name).slice(0, rows), expected.column(name).slice(0, rows))) is not None
    ]
    first = min(unequal, default=rows)
    for side, table in (("actual", actual), ("expected", expected)):
        shown = _row(table, first) if first < table.num_rows else "(no more rows)"
        text += f"\nfirst row apart in {side}: {shown}"
    return text


def _row(table: pa.Table, row: int) -> str:
    return repr(table.slice(row, 1).to_pylist()[0])
