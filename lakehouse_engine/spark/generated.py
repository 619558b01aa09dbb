"""Generated columns of a DataFrame: computed if absent, compared if given."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import char_length, coalesce, col, concat, expr, left, lit, raise_error, rtrim, struct, to_json, when

from lakehouse_engine import errors
from lakehouse_engine.errors import ConstraintError, SchemaIncompatibleError
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.keys import IS_DELETED, RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.nested import children
from lakehouse_engine.record.schema import reconcile
from lakehouse_engine.record.spark_types import spark_name
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.spark.schema import to_arrow_schema, to_spark_type
from lakehouse_engine.sql.grammar.lexer import quote_name

_UTC = frozenset({"UTC", "UCT", "GMT", "GREENWICH", "UNIVERSAL", "ZULU", "Z", "GMT0", "GMT+0", "GMT-0", "UTC+0", "+00:00", "+00"})
_SHOWN = 300
"""Maximum characters of a row in an error."""


def with_generated(
    frame: DataFrame, columns: Sequence[Generated], schema: pa.Schema, config: TableConfig, *, unless: Column | None = None
) -> DataFrame:
    """The rows with the generated columns of a table with columns `schema`.

    They are computed from the values to be stored: cast to the table's types, null for missing columns. Running the result raises
    `ConstraintError` for a row with another value, except for deletions. `unless` is a condition under which given values are not compared
    but replaced. Raises `ConstraintError` if the session uses another time zone, `SchemaIncompatibleError` for a column of another nested
    type.
    """
    for one in columns:
        _check_zone(frame, one)
    inputs = {name.lower() for one in columns for name in one.inputs}
    given = {name.lower(): name for name in frame.columns}
    frame = _with_inputs(frame, [field for field in schema if field.name.lower() in inputs], config)
    values = {}
    for one in columns:
        field = schema.field(schema.get_field_index(_stored_name(schema, one.column)))
        value = _fitted(value_of(one, field.type), config.constraints.length_of(one.column))
        own = given.get(one.column.lower())
        if own is not None:
            same = col(quote_name(own)).eqNullSafe(value)
            same = same if IS_DELETED not in given else same | coalesce(col(IS_DELETED), lit(False))
            same = same if unless is None else same | unless
            value = when(same, value).otherwise(_refusal(frame, one, own, config).cast(to_spark_type(field.type)))
        values[own or field.name] = value
    return frame.withColumns(values)


def value_of(one: Generated, kind: pa.DataType) -> Column:
    """The expression, cast as the column stores it."""
    return expr(f"({one.expression})").cast(to_spark_type(kind))


def _stored_name(schema: pa.Schema, name: str) -> str:
    return next(str(one) for one in schema.names if one.lower() == name.lower())


def _with_inputs(frame: DataFrame, inputs: Sequence[pa.Field], config: TableConfig) -> DataFrame:
    """The frame with columns as they will be stored, if that changes values, and nulls for absent ones."""
    offered = canonical_schema(to_arrow_schema(frame.schema), allow_timestamp_ntz=True)
    given = {field.name.lower(): field for field in offered}
    changes = {}
    for field in inputs:
        own = given.get(field.name.lower())
        if own is None:
            changes[field.name] = lit(None).cast(to_spark_type(field.type))
            continue
        wanted = reconcile(pa.schema([field]), pa.schema([own.with_name(field.name)]), evolve=True).field(0).type
        length = config.constraints.length_of(field.name)
        if spark_name(wanted) != spark_name(own.type):
            if children(wanted):
                raise SchemaIncompatibleError(
                    f"the column {field.name!r} is {spark_name(field.type)} in the table and {spark_name(own.type)} in the batch, and a"
                    " generated column is computed of it: cast it to the table's type",
                    column=field.name,
                )
            changes[own.name] = _fitted(col(quote_name(own.name)).cast(to_spark_type(wanted)), length)
        elif length is not None:
            changes[own.name] = _fitted(col(quote_name(own.name)), length)
    return frame.withColumns(changes) if changes else frame


def _fitted(text: Column, length: int | None) -> Column:
    """Cut texts like `record.constraints.fitted`: those too long only by blanks."""
    if length is None:
        return text
    return when((char_length(text) > length) & (char_length(rtrim(text)) <= length), left(text, lit(length))).otherwise(text)


def _refusal(frame: DataFrame, one: Generated, own: str, config: TableConfig) -> Column:
    """Expression that raises `ConstraintError` with the row."""
    names = {name.lower(): name for name in frame.columns}
    wanted = (RECORD_KEY, *config.record_key_fields, *one.inputs, own)
    shown = list(dict.fromkeys(names[name.lower()] for name in wanted if name.lower() in names))
    text = " ".join(one.expression.split())
    row = left(to_json(struct(*(col(quote_name(name)) for name in shown)), {"ignoreNullFields": "false"}), lit(_SHOWN))
    before = f"{ConstraintError.__name__}: the column {one.column!r} is GENERATED ALWAYS AS ({text}), and a row gives it another value: "
    after = f"; leave the column out, and it is computed. Nothing was written [column={one.column}]\n"
    # Split, so that a Spark error that prints this plan does not look like this error.
    return raise_error(concat(lit(f"\n{errors.__name__}."), lit(before), row, lit(after)))


def _check_zone(frame: DataFrame, one: Generated) -> None:
    zone = session_zone(frame)
    if one.zone and one.zone != zone:
        raise ConstraintError(
            f"the column {one.column!r} is GENERATED ALWAYS AS ({one.expression}), computed in the time zone {one.zone}, and this session's"
            f" is {zone}, where it may have other values: set spark.sql.session.timeZone to {one.zone}. Nothing was written",
            column=one.column,
        )


def session_zone(frame: DataFrame) -> str:
    """Time zone of a frame's session; UTC for any of its names."""
    zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    return "UTC" if zone.upper().removeprefix("ETC/") in _UTC else zone
