"""Maps the engine's errors and results to dbt's, and retries writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.spark_errors import is_of_spark, spark_text
from dbt.adapters.lakehouse.work.response import LakehouseResponse, write_message
from lakehouse_engine import api
from lakehouse_engine.api import errors

Result = TypeVar("Result")
EngineError = errors.LakehouseError
ERRORS: dict[type[errors.LakehouseError], type[DbtRuntimeError]] = {
    errors.OptionError: DbtConfigError,
    errors.TableError: DbtDatabaseError,
    errors.FormatError: DbtRuntimeError,
    errors.StorageError: DbtRuntimeError,
    errors.TimelineError: DbtRuntimeError,
    errors.WriteError: DbtDatabaseError,
    errors.LockError: DbtRuntimeError,
    errors.SavepointError: DbtRuntimeError,
    errors.RollbackError: DbtRuntimeError,
    errors.ClusteringError: DbtRuntimeError,
    errors.CompactionError: DbtRuntimeError,
    errors.IndexingError: DbtRuntimeError,
    errors.SqlError: DbtDatabaseError,
    errors.TaskError: DbtRuntimeError,
    errors.UnavailableError: DbtConfigError,
    errors.UnsupportedSessionError: DbtConfigError,
}
"""dbt error class for each branch of the engine's errors: database errors are those that the user's data or SQL caused."""
RETRIES = 3
_IN_WORDS_OF_DBT = {"hoodie.datasource.write.reconcile.schema=true": "on_schema_change: append_new_columns (or sync_all_columns)"}
"""Options named in error messages, and the model config that sets each."""


def dbt_error(error: Exception) -> Exception:
    """The dbt error for `error`: engine errors by the table above, also if Spark wraps them; Spark's own become database errors. dbt errors
    are returned unchanged.
    """
    if isinstance(error, DbtRuntimeError):
        return error
    if isinstance(error, errors.LakehouseError):
        return mapped_class(type(error))(str(error))
    if is_of_spark(error):
        raised = errors.engine_error(error)  # raised by the adapter's own queries over rows that violate a rule
        if raised is not None:
            return dbt_error(raised)
        return DbtDatabaseError(spark_text(error))
    return error


def in_words_of_dbt(text: str) -> str:
    """A write error of a model, with option names replaced by the dbt configs that set them."""
    for option, config in _IN_WORDS_OF_DBT.items():
        text = text.replace(option, config)
    return text


def mapped_class(kind: type[errors.LakehouseError]) -> type[DbtRuntimeError]:
    """Entry of the table for `kind` or its nearest base class."""
    return next((ERRORS[base] for base in kind.__mro__ if base in ERRORS), DbtRuntimeError)


def java_stack(error: BaseException) -> str:
    """Java stack trace behind `error`; empty if there is none, as over Spark Connect."""
    known: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in known:
        stack = getattr(found, "_stackTrace", None)
        if isinstance(stack, str):
            return stack
        known.append(found)
        found = found.__cause__ or found.__context__
    return ""


def retried(write: Callable[[], Result]) -> Result:
    """Run a write again if another writer committed first; nothing was committed then. Raises the last attempt's error."""
    for attempt in range(1, RETRIES):
        try:
            return write()
        except errors.ChangedSinceReadError:  # noqa: PERF203 - one attempt is a whole commit
            raise  # the caller has to read again
        except errors.CommitConflictError:
            time.sleep(0.2 * attempt)
    return write()


def run_again(attempt: Callable[[], Result], retries: int, again: Callable[[], None] | None = None) -> Result:
    """Result of `attempt`, repeated up to `retries` times while other writers change what it read. `again` runs before each repetition."""
    return api.tables.repeated(attempt, retries, again)


def is_changed_since_read(error: BaseException) -> bool:
    """True if a write was refused because its inputs have changed."""
    return isinstance(error, errors.ChangedSinceReadError)


def is_outcome_unknown(error: BaseException) -> bool:
    """True if a write may have been committed although it raised."""
    return isinstance(error, errors.CommitOutcomeUnknownError)


def is_write_result(value: Any) -> bool:
    """True if an answer is the result of a write, not rows."""
    # A Spark Connect frame answers to any attribute name.
    return not hasattr(value, "toArrow") and hasattr(value, "instant") and hasattr(value, "inserts")


def response_of(result: Any) -> AdapterResponse:
    """A write result (one commit) as dbt's response; OK for anything else."""
    if not is_write_result(result):
        return AdapterResponse(_message="OK", code="OK")
    operation = str(getattr(result.operation, "value", result.operation)).lower()
    return LakehouseResponse(
        _message=write_message(operation, result.inserts, result.updates, result.deletes, result.instant),
        code=operation.upper(),
        rows_affected=result.rows_affected,
        query_id=result.instant,
        instant=result.instant,
        previous_instant=result.previous_instant,
        operation=operation,
        table_type=table_type_of(result.table_type),
        inserts=result.inserts,
        updates=result.updates,
        deletes=result.deletes,
        files_created=result.files_created,
        files_updated=result.files_updated,
        log_files=result.log_files,
        bytes_written=result.bytes_written,
        failed_services=list(result.failed_services) or None,
    )


def table_type_of(value: Any) -> str:
    """`cow` or `mor`, from a table type of the engine or its text."""
    return {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}.get(str(getattr(value, "value", value)), str(value).lower())
