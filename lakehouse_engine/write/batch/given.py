"""Rows in this process, in any supported form, as the input of a write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import LakehouseError, OptionError, SchemaIncompatibleError
from lakehouse_engine.write.batch.input import ArrowInput


def arrow_input(data: Any) -> ArrowInput:
    """An Arrow table, record batch (reader), pandas frame, or what exports itself as Arrow data. Raises `OptionError` for others."""
    try:
        return ArrowInput(_table_of(data))
    except LakehouseError:
        raise
    except Exception as error:
        raise SchemaIncompatibleError(f"the rows, given as {type(data).__name__}, cannot be had as Arrow data: {error}") from error


def _table_of(data: Any) -> pa.Table:
    """Raises whatever reading the rows raises: a reader, and objects in a frame, are the caller's code."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if type(data).__module__.startswith("pandas.") and type(data).__name__ == "DataFrame":
        return pa.Table.from_pandas(data, preserve_index=False)
    kinds = "a Spark DataFrame, a pyarrow Table or RecordBatchReader, or a pandas DataFrame"
    raise OptionError(f"rows come as {kinds}, not as {type(data).__name__}")
