"""Turns a Python model's return value into a Spark DataFrame of the thread's session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from lakehouse_engine import api

if TYPE_CHECKING:
    import pyarrow as pa

_TAKEN = (
    "a DataFrame of Spark, pandas, pandas on Spark or polars (also a LazyFrame), a pyarrow Table, RecordBatch or RecordBatchReader,"
    " or anything else with __arrow_c_stream__"
)


def as_frame(answer: Any, spark: Any, name: str) -> Any:
    """The value as a DataFrame of `spark`. Raises `DbtRuntimeError` with the model's name for other values and for types that Spark lacks.
    """
    from pyspark.sql import DataFrame

    if answer is None:
        raise DbtRuntimeError(f"{name}: the function model(dbt, session) returned nothing; end it with `return` and {_TAKEN}")
    # A Spark Connect frame answers to any attribute name, so its class is checked first.
    if not isinstance(answer, DataFrame) and hasattr(answer, "to_spark"):
        answer = answer.to_spark()
    if isinstance(answer, DataFrame):
        # Pandas on Spark makes frames in the root session, which does not see this session's views.
        return answer if answer.sparkSession is spark else _sent(_fetched(answer), spark)
    rows = _local_rows(answer, name)
    try:
        return _sent(rows, spark)
    except Exception as error:
        from pyspark.errors import PySparkException

        if not isinstance(error, PySparkException | TypeError):
            raise
        raise DbtRuntimeError(f"{name}: Spark cannot take the {type(answer).__name__} that the model returned: {_first(error)}") from error


def _sent(rows: Any, spark: Any) -> Any:
    """Check the columns of a frame without rows; over Spark Connect, Spark does not."""
    import pyarrow as pa

    if not isinstance(rows, pa.Table) or len(rows):
        return spark.createDataFrame(rows)
    return spark.createDataFrame(pa.Table.from_arrays([pa.nulls(1, field.type) for field in rows.schema], schema=rows.schema)).limit(0)


def _fetched(frame: Any) -> pa.Table:
    return api.frames.fetched(frame).combine_chunks()


def _local_rows(answer: Any, name: str) -> Any:
    """Rows in this process: pandas unchanged, the rest as Arrow. Pandas without rows becomes Arrow too, as Spark would infer no columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    library = type(answer).__module__.split(".")[0]
    if library == "pandas" and type(answer).__name__ == "DataFrame":
        if len(answer) or not len(answer.columns):
            return answer
        answer = pa.Table.from_pandas(answer, preserve_index=False)
    if library == "polars" and hasattr(answer, "collect"):
        answer = answer.collect()
    if isinstance(answer, pa.RecordBatch):
        answer = pa.Table.from_batches([answer])
    elif isinstance(answer, pa.RecordBatchReader):
        answer = answer.read_all()
    elif library not in ("pandas", "polars", "pyarrow") or type(answer).__name__ == "DataFrame":
        answer = _exported(answer, name)
    if not isinstance(answer, pa.Table):
        raise _no_rows(answer, name)
    plain = pa.schema([field.with_type(plain_type(field.type)) for field in answer.schema])
    # Spark has no nanoseconds, and cuts those of pandas as well.
    options = [pc.CastOptions(field.type, allow_time_truncate=True) for field in plain]
    columns = [pc.cast(column, options=option) for column, option in zip(answer.columns, options, strict=True)]
    # Spark drops batches that follow an empty one.
    return pa.Table.from_arrays(columns, schema=plain).combine_chunks()


def _exported(answer: Any, name: str) -> pa.Table:
    import pyarrow as pa

    if hasattr(answer, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(answer).read_all()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DbtRuntimeError(f"{name}: what the model returned has no rows with columns: {_first(error)}") from error
    if hasattr(answer, "to_arrow"):
        return answer.to_arrow()
    raise _no_rows(answer, name)


def _no_rows(answer: Any, name: str) -> DbtRuntimeError:
    kind = f"{type(answer).__module__}.{type(answer).__qualname__}"
    return DbtRuntimeError(f"{name}: a Python model returns {_TAKEN}; this one returned a {kind}")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Equivalent type that Spark accepts, for dictionary, view, large and unsigned types."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    for forms, plain in (
        (("large_string", "string_view"), pa.string()),
        (("large_binary", "binary_view"), pa.binary()),
        (("uint8",), pa.int16()),
        (("uint16",), pa.int32()),
        (("uint32",), pa.int64()),
        (("uint64",), pa.decimal128(20, 0)),
        (("halffloat",), pa.float32()),
        (("date64[ms]",), pa.date32()),
    ):
        if str(kind) in forms:
            return plain
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return kind


def _first(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
