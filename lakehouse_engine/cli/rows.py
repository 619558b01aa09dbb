"""Rows of a scan as a table, CSV, JSON or Parquet, written as they are read."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from lakehouse_engine.cli.terminal.output import plain, print_rows
from lakehouse_engine.errors import UnsupportedTypeError

FORMATS = ("table", "csv", "json", "parquet")
TABLE_LIMIT = 20
_JSON_BATCH = 5_000


def limited(tables: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows; reading stops there."""
    left = limit
    for table in tables:
        if left is None:
            yield table
            continue
        if left <= 0:
            return
        yield table.slice(0, left)
        left -= min(left, table.num_rows)


def write_rows(tables: Iterator[pa.Table], schema: pa.Schema, form: str, output: str | None) -> int:
    """Write all rows in one of `FORMATS` to the file `output`, or to standard output; returns their number.

    A file gets its name when it is complete. Raises `UnsupportedTypeError` for nested columns as CSV.
    """
    if form == "table":
        return _table(tables, schema)
    if form == "csv":
        _check_flat(schema)
    with _sink(output) as sink:
        return {"csv": _csv, "json": _json, "parquet": _parquet}[form](tables, schema, sink)


def _table(tables: Iterator[pa.Table], schema: pa.Schema) -> int:
    rows = pa.concat_tables([schema.empty_table(), *tables])
    print_rows(schema.names, list(zip(*_values(rows), strict=True)) if schema.names else [])
    return int(rows.num_rows)


def _csv(tables: Iterator[pa.Table], schema: pa.Schema, sink: BinaryIO) -> int:
    rows = 0
    text = pa.schema([field.with_type(pa.string()) if pa.types.is_decimal(field.type) else field for field in schema])
    with pcsv.CSVWriter(sink, text) as writer:
        for table in tables:
            writer.write_table(table.cast(text))
            rows += table.num_rows
    return rows


def _check_flat(schema: pa.Schema) -> None:
    for field in schema:
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            raise UnsupportedTypeError(
                f"CSV cannot hold the column {field.name!r} of type {field.type}; use --format json or parquet", column=field.name
            )


def _json(tables: Iterator[pa.Table], schema: pa.Schema, sink: BinaryIO) -> int:
    """An array with one object per row."""
    rows, before = 0, b"[\n"
    for table in tables:
        for batch in table.to_batches(_JSON_BATCH):
            texts = [json.dumps(dict(zip(schema.names, row, strict=True)), ensure_ascii=False) for row in zip(*_values(batch), strict=True)]
            if texts:
                sink.write(before + ",\n".join(texts).encode())
                before = b",\n"
            rows += len(texts)
    sink.write(b"\n]\n" if rows else b"[]\n")
    return rows


def _parquet(tables: Iterator[pa.Table], schema: pa.Schema, sink: BinaryIO) -> int:
    rows = 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _values(table: pa.Table | pa.RecordBatch) -> Sequence[list[object]]:
    """Values of a column as JSON values."""
    return [[_mapped(value, column.type) for value in _objects(column)] for column in table.columns]


def _objects(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """Like `to_pylist`, with text for days and moments outside the years 1 to 9999, for which Python has no objects."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        return [_object(value) for value in column]


def _object(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_map(value.type):
            return [(key, _object(one)) for key, one in zip(value.values.field(0).to_pylist(), value.values.field(1), strict=True)]
        if pa.types.is_struct(value.type):
            return {field.name: _object(value[field.name]) for field in value.type}
        if pa.types.is_nested(value.type):
            return [_object(one) for one in value.values]
        return _iso(value.cast(pa.string()).as_py())


def _iso(text: str) -> str:
    """Arrow's text of a day or moment in the form of Python's `isoformat`."""
    if text.startswith("<"):  # Arrow marks it as out of range, with the value
        return text
    day, separator, time = text.partition(" ")
    return f"{day}T{time.replace('Z', '+00:00').replace('.000000', '')}" if separator else day


def _mapped(value: object, kind: pa.DataType) -> object:
    """Maps come from Arrow as lists of pairs, at any depth; JSON has objects for them."""
    if value is None or not pa.types.is_nested(kind):
        return plain(value)
    if pa.types.is_map(kind):
        return {str(plain(key)): _mapped(one, kind.item_type) for key, one in value}  # type: ignore[attr-defined]
    if pa.types.is_struct(kind):
        return {field.name: _mapped(value[field.name], field.type) for field in kind}  # type: ignore[index]
    return [_mapped(one, kind.value_type) for one in value]  # type: ignore[attr-defined]


@contextmanager
def _sink(output: str | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    partial = f"{output}.partial"
    try:
        with open(partial, "wb") as sink:
            yield sink
        os.replace(partial, output)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
