"""GENERATED ALWAYS AS (expression): rows get such columns before anything else is asked of them, or show that theirs are right.

Spark alone computes expressions, so that the rows themselves are asked (`Input.generated`). What is settled here is which rows of a write
there are whose values no expression of the batch gives: stored ones, of which a write changes a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakehouse_engine.errors import ConstraintError, OptionError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.record.merging.payloads import merger_of
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.request import WriteRequest


def generating(state: TableState, request: WriteRequest) -> tuple[Generated, ...]:
    """The generated columns that rows of the request have to keep. Raises `OptionError` for a request that contradicts itself."""
    if request.redefines and not request.replace_schema:
        raise OptionError("redefines is of a write with replace_schema", table=state.config.name)
    if request.data is None or request.redefines or request.operation is WriteOperationType.DELETE:
        return ()
    constraints = state.config.constraints
    return constraints.generated_among(table_schema(state).names) if constraints.generated else ()


def with_generated(state: TableState, request: WriteRequest, columns: Sequence[Generated]) -> WriteRequest:
    """The request with rows that have these columns, computed where they were not given.

    Raises `ConstraintError`, naming the column, where the stored value could not be known to be right; rows with another value raise it
    when they are read.
    """
    if not columns or request.data is None:
        return request
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
    updates = None if request.update_columns is None else _updated(columns, request.update_columns, config.record_key_fields)
    return replace(request, data=request.data.generated(columns, schema, config), update_columns=updates)


def _keeps_rows_whole(state: TableState, request: WriteRequest) -> bool:
    """Whether each row that is stored is one of the request's, or was stored before."""
    merger = merger_of(state.config, request.options.payload_class, as_given=request.as_given)
    if merger.whole_rows or request.replaced_rows is not None:
        return True
    in_buckets = request.operation is WriteOperationType.INSERT and isinstance(load_index(state, request.options), BucketIndex)
    meets_stored = request.operation is WriteOperationType.UPSERT or in_buckets
    return not meets_stored and not (merger.losers_matter and request.options.combine_before_insert)


def _check_inputs(columns: Sequence[Generated], given: pa.Schema, schema: pa.Schema, *, may_miss: bool) -> None:
    """Whether all of what is computed of is there: in an upsert a column that is left out is one that stored rows keep."""
    offered, known = {name.lower() for name in given.names}, {name.lower() for name in schema.names}
    for one in columns:
        missing = next((name for name in one.inputs if name.lower() not in offered), None)
        if missing is not None and (not may_miss or missing.lower() not in known):
            raise ConstraintError(
                f"the column {one.column!r} is GENERATED ALWAYS AS ({one.expression}), and the rows do not have {missing!r}, which it is"
                " computed of: give that column, too. Nothing was written",
                column=one.column,
            )


def _updated(columns: Sequence[Generated], updates: Sequence[str], keys: Sequence[str]) -> tuple[str, ...]:
    """The columns to update, with those that are computed of them, and without those that are not. `keys` are the same in both rows."""
    same, named = {name.lower() for name in keys}, {name.lower() for name in updates}
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
