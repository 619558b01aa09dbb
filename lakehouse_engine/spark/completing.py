"""Completes rows with the table's generated columns before a write: Spark computes them, or checks given ones.

The write itself only checks that the table still has the columns for which its rows were completed (`write.context`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from lakehouse_engine.commit.expected import check_expected
from lakehouse_engine.errors import ConstraintError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.record.merging.payloads import merger_of
from lakehouse_engine.record.types import canonical_table
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.generated import with_generated
from lakehouse_engine.spark.input import DataFrameInput
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput, Input
from lakehouse_engine.write.context import generated_columns, ordering_columns, with_ordering
from lakehouse_engine.write.request import WriteRequest


def completed(state: TableState, request: WriteRequest, spark: SparkSession | None) -> WriteRequest:
    """The request with generated columns in its rows, computed if not given.

    Raises `ConstraintError` with the column if nothing can compute it, or its stored value cannot be checked; rows with a wrong value raise
    it when they are read. If rows are wrong because the table has changed, raises `ChangedSinceReadError`, provided the request says what
    was read.
    """
    columns = generated_columns(state, request)
    if not columns or request.data is None:
        return request
    if request.expected is not None:
        check_expected(state, request.expected)
    config, schema = state.config, table_schema(state)
    if not _keeps_rows_whole(state, request):
        raise ConstraintError(
            f"the column {columns[0].column!r} is generated, and the payload class of the table makes one row of two, for which it is not"
            " computed: UPDATE and MERGE of SQL write whole rows; or set a payload class that keeps one of the two. Nothing was written",
            column=columns[0].column,
        )
    whole = request.operation is not WriteOperationType.UPSERT or request.replaced_rows is not None
    may_miss = whole and request.options.schema_evolution and not request.replace_schema
    _check_inputs(columns, request.data.schema, schema, may_miss=may_miss)
    updates = request.update_columns
    if updates is not None:
        named = with_ordering(state, request).update_columns or updates
        updates = _updated(columns, named, config.record_key_fields, ordering_columns(state, request))
    return replace(request, data=_computed(request.data, columns, state, spark), update_columns=updates, generated=columns)


def _computed(data: Input, columns: Sequence[Generated], state: TableState, spark: SparkSession | None) -> Input:
    config, schema = state.config, table_schema(state)
    if isinstance(data, DataFrameInput):
        return replace(data, frame=with_generated(data.frame, columns, schema, config))
    assert isinstance(data, ArrowInput)
    if not data.table.num_rows:
        return ArrowInput(_with_empty(data.table, columns, schema))
    if spark is None:
        raise ConstraintError(
            f"the column {columns[0].column!r} is GENERATED ALWAYS AS ({columns[0].expression}), which only Spark computes: open the"
            " table with a SparkSession (HoodieTable.open(path, spark=...), Lakehouse(path, spark=...)), or give the rows as a Spark"
            " DataFrame. Nothing was written",
            column=columns[0].column,
        )
    rows = abilities_of(spark).frame(canonical_table(data.table, allow_timestamp_ntz=True, untrusted=True))
    return ArrowInput(with_generated(rows, columns, schema, config).toArrow())


def _with_empty(rows: pa.Table, columns: Sequence[Generated], schema: pa.Schema) -> pa.Table:
    offered = {name.lower() for name in rows.column_names}
    for field in (schema.field(one.column) for one in columns if one.column.lower() not in offered):
        rows = rows.append_column(field, pa.nulls(0, field.type))
    return rows


def _keeps_rows_whole(state: TableState, request: WriteRequest) -> bool:
    """True if each stored row comes from the request, or was stored before."""
    merger = merger_of(state.config, request.options.payload_class, as_given=request.as_given)
    if merger.whole_rows or request.replaced_rows is not None:
        return True
    in_buckets = request.operation is WriteOperationType.INSERT and isinstance(load_index(state, request.options), BucketIndex)
    meets_stored = request.operation is WriteOperationType.UPSERT or in_buckets
    return not meets_stored and not (merger.losers_matter and request.options.combine_before_insert)


def _check_inputs(columns: Sequence[Generated], given: pa.Schema, schema: pa.Schema, *, may_miss: bool) -> None:
    """True if all columns that it is computed from are present: an upsert without one of them keeps the stored value."""
    offered, known = {name.lower() for name in given.names}, {name.lower() for name in schema.names}
    for one in columns:
        missing = next((name for name in one.inputs if name.lower() not in offered), None)
        if missing is not None and (not may_miss or missing.lower() not in known):
            raise ConstraintError(
                f"the column {one.column!r} is GENERATED ALWAYS AS ({one.expression}), and the rows do not have {missing!r}, which it is"
                " computed of: give that column, too. Nothing was written",
                column=one.column,
            )


def _updated(columns: Sequence[Generated], updates: Sequence[str], keys: Sequence[str], ordering: Sequence[str]) -> tuple[str, ...]:
    """Columns to update, plus generated ones computed from them, minus other generated ones. `keys` are equal in both rows; sources of a
    generated `ordering` column are always updated.
    """
    same, orders = {name.lower() for name in keys}, {name.lower() for name in ordering}
    moved = [name for one in columns if one.column.lower() in orders for name in one.inputs if name.lower() not in same]
    updates = [*updates, *(name for name in moved if name.lower() not in {one.lower() for one in updates})]
    named = {name.lower() for name in updates}
    kept = [name for name in updates if all(name.lower() != one.column.lower() for one in columns)]
    for one in columns:
        inputs = [name for name in one.inputs if name.lower() not in same]
        changed = [name for name in inputs if name.lower() in named]
        if changed and len(changed) < len(inputs):
            other = next(name for name in inputs if name.lower() not in named)
            raise ConstraintError(
                f"the column {one.column!r} is GENERATED ALWAYS AS ({one.expression}), and of what it is computed of {changed[0]!r} is"
                f" among the columns to update and {other!r} is not: name both, or neither. Nothing was written",
                column=one.column,
            )
        kept += [one.column] if changed else []
    return tuple(kept)
